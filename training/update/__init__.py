"""One optimiser step: losses, objective, optimisers."""
