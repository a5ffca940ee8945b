"""Starts Deskhand's processes, keeps them running and stops them without leaving an orphan."""
