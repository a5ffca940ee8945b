"""What goes when a team's rules say so: screenshots and turns of old trajectories."""
