"""A server of trackio."""
