"""Models as the trainer runs them; what is special to a family stands in `families`."""
