"""One picture that stands for a trajectory."""
