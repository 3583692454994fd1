"""Recorded material from outside brought to events and windows."""
