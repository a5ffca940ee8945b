"""Protocols of the env server: one folder and one row of the registry each."""
