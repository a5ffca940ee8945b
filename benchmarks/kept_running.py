"""Heartbeats of experiments that no gpu worker holds, so that the dispatcher leaves them alone."""

import threading
import time
from collections.abc import Iterable

BEAT_S = 2.0


def keep_running(experiment_ids: Iterable[int]) -> None:
    """Beat as their gpu worker would, from a thread, until this process ends."""
    ids = tuple(experiment_ids)
    threading.Thread(target=_beat, args=(ids,), daemon=True).start()


def _beat(ids: tuple[int, ...]) -> None:
    from webapp.experiments.services.attempts import beat_experiment

    while True:
        for experiment_id in ids:
            beat_experiment(experiment_id)
        time.sleep(BEAT_S)
