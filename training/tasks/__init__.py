"""Where tasks come from: generators, importers, and the table of what Deskhand can run. Torch-free."""
