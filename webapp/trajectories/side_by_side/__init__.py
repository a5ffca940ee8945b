"""Trajectories of one task beside each other, turn by turn."""
