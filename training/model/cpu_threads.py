"""How many threads torch may use on a CPU."""

import os


def num_threads() -> int:
    """DESKHAND_TORCH_THREADS, else half of the processors that this process may use.

    Trainer and policy server take turns most of the time; the other half is for the desktops.
    """
    wanted = os.environ.get("DESKHAND_TORCH_THREADS", "")
    return int(wanted) if wanted else max(1, len(os.sched_getaffinity(0)) // 2)
