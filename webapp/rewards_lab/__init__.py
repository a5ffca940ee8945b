"""The reward lab: presets tried on what is stored, before a run pays for them."""
