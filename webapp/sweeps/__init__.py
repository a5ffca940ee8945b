"""Sweeps: searches over values of knobs."""
