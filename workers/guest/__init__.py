"""Programs that run inside a desktop, by the system Python and its standard library alone."""
