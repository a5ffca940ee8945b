"""Incoming webhooks of Discord."""
