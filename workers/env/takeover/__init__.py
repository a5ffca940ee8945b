"""People at a desktop: its screen for the web process, and the turns of whoever takes it over."""
