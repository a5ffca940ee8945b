"""Which trajectories this process runs: those that its heartbeat keeps alive."""

import contextlib
from collections.abc import Iterator

_held: set[int] = set()


@contextlib.contextmanager
def held(trajectory_id: int) -> Iterator[None]:
    """Inside the block its heartbeat goes on."""
    _held.add(trajectory_id)
    try:
        yield
    finally:
        _held.discard(trajectory_id)


def all_held() -> list[int]:
    return list(_held)
