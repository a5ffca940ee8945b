"""A screen that no action changes."""
