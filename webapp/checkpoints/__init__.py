"""Checkpoints on demand: listed, evaluated, exported, copied."""
