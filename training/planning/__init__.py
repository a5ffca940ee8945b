"""What a launch needs to know beforehand: presets, layouts, memory."""
