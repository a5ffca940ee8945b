"""Whether an experiment can run here, before it is queued."""
