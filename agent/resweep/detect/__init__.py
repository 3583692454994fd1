"""What invalidates a tuned k, found and named."""
