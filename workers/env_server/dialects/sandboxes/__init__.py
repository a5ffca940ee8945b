"""Bare sandboxes: the protocol that our own gateway provider speaks."""
