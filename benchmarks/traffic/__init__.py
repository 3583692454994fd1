"""Simulated retrieval traffic with known changes, for the detection benchmark."""
