"""The deletion test: an optional feature is its own files and its rows, and all else passes without them."""
