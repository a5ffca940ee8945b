"""What experiments cost: hours and tokens that were recorded, at the team's prices."""
