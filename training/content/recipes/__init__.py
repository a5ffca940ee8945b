"""How the checkpoints that Deskhand ships and its tests use are made."""
