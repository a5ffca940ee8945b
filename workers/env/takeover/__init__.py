"""People at a desktop: its screen for the web process, and the turns of a person who takes it over."""
