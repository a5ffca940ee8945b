"""The reward terms; training/rewards/presets.py lists them by versioned name."""
