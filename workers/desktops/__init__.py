"""How desktops are made, driven and ended: one folder per technology, one row in registry.py."""
