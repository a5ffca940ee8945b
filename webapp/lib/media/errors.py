"""What a storage on the network does that a folder does not."""


class StorageAway(OSError):
    """Raised when the storage cannot be reached, or is too busy; the same call may work later."""


class StorageRefused(OSError):
    """Raised when the storage answers that it will not; the message says what to look at."""
