"""Anthropic's computer tool."""
