"""How resweep's numbers leave it: Prometheus, OTLP, signed webhooks. Each module loads only what it needs."""
