"""One JSON object a call, with every argument that an action can have: the dialect of our own models."""
