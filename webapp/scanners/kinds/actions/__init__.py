"""Turns in a row whose actions are of given kinds."""
