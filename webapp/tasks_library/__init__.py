"""The task library: what is practised, how it is scored, and how it went."""
