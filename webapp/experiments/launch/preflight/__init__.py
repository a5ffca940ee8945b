"""Checks of a config before it is queued."""
