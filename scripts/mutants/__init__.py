"""Planted mistakes, and whether the tests notice them."""
