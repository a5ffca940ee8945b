"""From groups of trajectories to the data of one step; rank 0 only."""
