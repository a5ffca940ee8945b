"""Desktops with a task on them, as an episode uses them; one folder per source."""
