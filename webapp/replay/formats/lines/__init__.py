"""JSON lines, the form that the others are made from."""
