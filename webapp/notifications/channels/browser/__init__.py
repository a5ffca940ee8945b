"""Pages of the team that are open."""
