"""What came of a run, in one line, and the one thing to do about it."""
