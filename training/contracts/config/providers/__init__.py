"""Providers of desktops: one file each, with its knobs and its row."""
