"""Files that others made, opened within limits."""
