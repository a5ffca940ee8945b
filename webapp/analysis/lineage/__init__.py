"""Which experiment came from which, what was changed on the way, and which metrics moved."""
