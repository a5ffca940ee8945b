"""Provider remote: desktops of an env server elsewhere."""
