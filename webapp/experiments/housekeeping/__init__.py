"""Names, tags and the archive of experiments."""
