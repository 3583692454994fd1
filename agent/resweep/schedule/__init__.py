"""Jobs and leadership: the only place that knows the scheduler."""
