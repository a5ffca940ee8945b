"""Copies of an experiment's numbers in other trackers; they read the database, so training never waits."""
