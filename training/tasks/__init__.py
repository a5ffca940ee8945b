"""Where tasks come from: generators, importers, and the tables of what can run."""
