"""The whole contract with workers, and the name of its version."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache

from webapp import __version__
from webapp.worker_door import (  # noqa: F401  (their functions are the rows)
    assignments,
    attempts,
    gangs,
    gpu_hosts,
    host_mirror,
    human_control,
    parking,
    saved_weights,
    snapshots,
    trajectories,
    workers,
)
from webapp.worker_door.receive import Batch, Received
from webapp.worker_door.rows import all_rows
from webapp.worker_door.trainer_requests import answers  # noqa: F401


@cache  # each call of a joined host is compared with it
def version() -> str:
    """Of this program and of the contract: hosts of another one are refused."""
    rows = sorted(f"{row.name}{inspect.signature(row.function)}" for row in all_rows())
    text = "\n".join([*rows, str(Batch.model_json_schema()), str(Received.model_json_schema())])
    return f"{__version__}+{hashlib.sha256(text.encode()).hexdigest()[:8]}"
