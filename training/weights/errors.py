"""What can go wrong in a weight sync."""


class SyncFailed(Exception):
    """Raised on every rank when a version did not reach the engine; the trainer is untouched."""


class WeightsRefused(ValueError):
    """Raised by an engine that cannot take what it is sent; the message lists the names."""
