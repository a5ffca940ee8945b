"""Screens: watching a live desktop by noVNC, taking it over, recording demonstrations."""
