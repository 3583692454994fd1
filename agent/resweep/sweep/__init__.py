"""Measures over k, the choice of a depth, and its record."""
