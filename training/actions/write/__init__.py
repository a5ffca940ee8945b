"""Typed actions as text: completions for training data, Python for OSWorld's desktops."""
