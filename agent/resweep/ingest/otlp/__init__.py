"""OTLP traces of existing instrumentation, brought to retrieval events."""
