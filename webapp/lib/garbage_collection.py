"""What a process made while it started stays for good, and no collection need look at it again."""

import gc


def freeze_startup_objects() -> None:
    """Call once everything is imported: a full collection of Django's objects stops all threads for 0.1 s,
    and happens every few pages or trajectories."""
    gc.collect()
    gc.freeze()
