"""Requests to addresses that people name: which are allowed, and which secrets may go there."""
