"""Signed webhooks."""
