"""OSWorld's evaluators: getters read the desktop, metrics compare."""
