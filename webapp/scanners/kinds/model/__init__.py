"""Questions that a language model answers."""
