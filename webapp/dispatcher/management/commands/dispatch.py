"""The dispatcher: moves work from the queue of record to the workers and takes back what died.

Each tick:  lose silent workers (once they could have beaten) -> take back their trajectories and experiments
-> take sweeps further -> send waiting trajectories -> place waiting experiments on gpu workers -> prune old
events -> start processes for long work. Nothing new is sent while a disk has too little room for it.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DataError, IntegrityError, InterfaceError, close_old_connections
from django.db import OperationalError as DatabaseOperationalError
from kombu.exceptions import OperationalError

from webapp.checkpoints.services.exports import lose_stale_exports
from webapp.dispatcher.child_work import Children
from webapp.dispatcher.cluster_jobs import ClusterRounds
from webapp.dispatcher.disk_watch import DiskWatch
from webapp.dispatcher.launchers.contract import LauncherError
from webapp.dispatcher.launchers.registry import launcher
from webapp.dispatcher.liveness import Liveness, hosts_port_answers
from webapp.dispatcher.place_experiments import place_experiments
from webapp.dispatcher.services.beat import beat
from webapp.dispatcher.services.waiting_trajectories import fill_free_slots, resend_forgotten
from webapp.dispatcher.upkeep import Upkeep
from webapp.experiments.queries.attempts import next_attempt_number
from webapp.experiments.services.attempts import lose_stale_experiments
from webapp.fleet.services.joined_silence import SILENCE
from webapp.fleet.services.operations import expire_operations
from webapp.fleet.services.workers import lose_stale_workers
from webapp.lib.garbage_collection import freeze_startup_objects
from webapp.lib.heartbeat_age import touch_beat_file
from webapp.sweeps.services.arms import advance_sweeps
from webapp.trajectories.services.branches import give_up_hostless
from webapp.trajectories.services.groups import cancel_groups_of
from webapp.trajectories.services.parking import free_lost_questions
from webapp.trajectories.services.trajectories import lose_stale_trajectories

log = logging.getLogger(__name__)
TICK_S = 0.5
SLOW_TICKS = 4
"""Ticks between two checks of liveness."""
PORT_TICKS = 8
"""Between two looks at our own port for joined hosts."""
UPKEEP_TICKS = 600
"""Upkeep begins a new round every five minutes, and at the start."""
DISK_WATCH = DiskWatch()
UNSTORABLE = (DataError, IntegrityError)
"""About a value of one row: no later tick would make it fit, and it concerns no other part."""


class Command(BaseCommand):
    help = "Send waiting work to the workers; take back what dead workers held."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--once", action="store_true", help="one tick, then exit")

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        if options["once"]:
            tick(check_liveness=True)
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        count, liveness, upkeep, children = 0, Liveness(), Upkeep(), Children()
        longest_s = 0.0
        cluster = _begin_cluster_rounds()
        freeze_startup_objects()
        while not stopping.wait(TICK_S):
            count += 1
            started = time.monotonic()
            try:
                close_old_connections()
                if settings.HOSTS_URL and count % PORT_TICKS == 0:
                    SILENCE.note_port(answers=hosts_port_answers())
                tick(check_liveness=count % SLOW_TICKS == 0 and liveness.may_judge())
                if count % UPKEEP_TICKS == 1:
                    upkeep.begin()
                upkeep.go_on()
                children.go_on()
                longest_s = max(longest_s, time.monotonic() - started)
                if count % SLOW_TICKS == 0:
                    beat(longest_s)
                    touch_beat_file()
                    longest_s = 0.0
            except (DatabaseOperationalError, InterfaceError, *UNSTORABLE, OperationalError) as error:
                log.warning("dispatcher tick failed, trying again: %s", error)
        children.stop()
        if cluster:
            cluster.stop()


def _begin_cluster_rounds() -> ClusterRounds | None:
    try:
        if (found := launcher()) is None:
            return None
        rounds = ClusterRounds(found)
        rounds.start()
    except LauncherError as error:
        raise CommandError(str(error)) from error
    return rounds


def tick(*, check_liveness: bool) -> None:
    """One round of the dispatcher; a part that the database refuses keeps none of the others."""
    for part in LIVENESS_PARTS if check_liveness else ():
        _do(part)
    is_short = DISK_WATCH.is_short()
    _do(fill_free_slots)
    if not is_short and launcher() is None:
        _do(place_experiments)


def _do(part: Callable[[], object]) -> None:
    try:
        part()
    except UNSTORABLE:
        log.exception("dispatcher: %s failed, the rest goes on", part.__name__)


def _take_back() -> None:
    """What silent workers held."""
    for worker in lose_stale_workers():
        log.warning("worker %s stopped answering", worker.name)
    for trajectory_id in lose_stale_trajectories():
        log.warning("trajectory %s errored: its worker is gone", trajectory_id)
    for experiment_id in lose_stale_experiments():
        log.warning("experiment %s taken back: its gpu worker is gone", experiment_id)
        # Their policy is gone, too; the next attempt asks for its own, and may have to wait for a GPU.
        cancel_groups_of(experiment_id=experiment_id, before_attempt=next_attempt_number(experiment_id))


def _give_up_hostless() -> None:
    for trajectory_id in give_up_hostless():
        log.warning("trajectory %s errored: the machine with its snapshot is gone", trajectory_id)


LIVENESS_PARTS: tuple[Callable[[], object], ...] = (
    _take_back,
    lose_stale_exports,
    _give_up_hostless,
    free_lost_questions,
    resend_forgotten,
    expire_operations,
    advance_sweeps,
)
