"""The whole contract with workers, and the name of its version."""

import hashlib
from functools import cache

from webapp import __version__
from webapp.lib.remote_calls import all_calls
from webapp.worker_door import (  # noqa: F401  (their functions are the calls)
    assignments,
    attempts,
    checkpoint_copies_and_exports,
    gangs,
    gpu_hosts,
    host_mirror,
    human_control,
    parking,
    snapshots,
    task_drafts,
    trajectories,
    workers,
)
from webapp.worker_door.joined_hosts.batches import Batch, Received
from webapp.worker_door.trainer_requests import answers  # noqa: F401


@cache  # each call of a joined host is compared with it
def version() -> str:
    """Of this program and of the contract: hosts of another one are refused."""
    calls = sorted(f"{call.name}{call.signature}" for call in all_calls())
    text = "\n".join([*calls, str(Batch.model_json_schema()), str(Received.model_json_schema())])
    return f"{__version__}+{hashlib.sha256(text.encode()).hexdigest()[:8]}"
