"""What Deskhand ships rather than runs: generated task sets, and how its checkpoints were made."""
