"""The command `deskhand`."""
