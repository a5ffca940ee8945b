"""The updates of a step: losses, objective, optimisers."""
