"""What a trainer asks and reports by its coordinator, answered where the database is."""
