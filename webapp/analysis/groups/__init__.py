"""Groups of trajectories as cards, with what their rewards have in common."""
