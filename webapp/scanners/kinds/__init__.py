"""What scanners look for: one folder and one row each."""
