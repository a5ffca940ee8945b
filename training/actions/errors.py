"""The error of text that names no action."""


class ActionTextError(ValueError):
    """Raised when a completion is in a known dialect but says no action that can be done."""
