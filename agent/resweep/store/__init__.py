"""The agent's database: the only writer of what resweep remembers."""
