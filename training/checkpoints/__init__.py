"""Saving, restoring and exporting what a trainer holds."""
