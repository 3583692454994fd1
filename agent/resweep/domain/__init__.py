"""The pure core: no clock, no IO, no threads."""
