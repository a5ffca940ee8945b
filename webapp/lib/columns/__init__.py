"""What columns hold: texts that every database can store."""
