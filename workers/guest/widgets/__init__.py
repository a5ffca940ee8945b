"""Widgets of all programs, by calls on the accessibility bus."""
