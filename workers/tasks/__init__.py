"""Preparing a desktop for a task, solving it by its oracle, and scoring what became of it."""
