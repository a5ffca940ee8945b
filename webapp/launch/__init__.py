"""The launch page: form, presets, pre-flight."""
