"""The whole loop on a real corpus, on this machine: `resweep demo`."""
