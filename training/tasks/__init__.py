"""Where tasks come from: importers, and the tables of what can run."""
