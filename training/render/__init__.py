"""Trajectories and prompts as token sequences."""
