"""A task proposed from what a person arranged and did: set-up, oracle, and checks to choose from."""
