"""The labelled set: sampling, cases, formats."""
