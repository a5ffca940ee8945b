"""Schedulers that start a job for each attempt; one folder each, and one row in the registry."""
