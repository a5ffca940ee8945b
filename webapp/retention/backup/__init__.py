"""Backup and restore of an installation that goes on working meanwhile."""
