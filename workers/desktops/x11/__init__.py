"""X11 desktops in a bubblewrap sandbox."""
