"""A package, so that tests/training cannot be taken for the package training."""
