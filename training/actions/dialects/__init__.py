"""What models and tools write, one folder for each way; a folder and its row in `registry` can be deleted."""
