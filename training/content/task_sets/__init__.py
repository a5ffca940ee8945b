"""The generated task sets."""
