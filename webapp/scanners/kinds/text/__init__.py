"""Turns whose text has a match of a regular expression."""
