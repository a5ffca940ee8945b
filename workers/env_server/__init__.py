"""The env server: our desktops for trainers elsewhere, by the protocols of `dialects` on one port."""
