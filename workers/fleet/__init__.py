"""Keeps the database's picture of this machine's desktops and runs operators' requests."""
