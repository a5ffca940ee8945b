"""The pages of experiments: list, one experiment, comparison."""
