"""The env job: one trajectory on this slot's desktop.

lease (kept between trajectories) -> reset -> turns -> evaluate -> report; whatever breaks ends
the trajectory as `errored` with a kind, and never as a reward.
"""

import logging

import httpx
from django.core.exceptions import ObjectDoesNotExist
from django.db import close_old_connections

from training.contracts.types import Source
from training.log_lines import log_about
from training.rewards.expressions import TermError
from webapp.lib import outage_retries
from webapp.worker_door import assignments, parking
from webapp.worker_door.assignments import Assignment
from webapp.worker_door.trajectories import end_cancelled, end_errored
from workers import identity, worker_row
from workers.desktops.contract import EnvError
from workers.env import slots
from workers.env.actors import Actor, IdleActor, NoPolicy, OracleActor, PolicyActor, ScriptedActor
from workers.env.policy_client import PolicyError
from workers.env.redone_turns import NotReproduced
from workers.env.rented_desktops import key_of
from workers.env.rollout import Rollout, TrajectoryEnded
from workers.env.running_trajectories import held
from workers.env.takeover.screen_offer import screen_offered
from workers.env.takeover.takeovers import DemonstrationAbandoned
from workers.env.turn_reports import texts_of
from workers.env.turn_snapshots import SnapshotLost
from workers.environments.registry import AtCapacity
from workers.reports.current import reports
from workers.tasks.errors import EvaluatorError, OracleError, SetupError

log = logging.getLogger(__name__)

PLAIN_ERRORS: dict[type[Exception], str] = {
    NoPolicy: "no_policy",
    PolicyError: "policy_server",
    httpx.TransportError: "policy_server",
    SetupError: "setup",
    EvaluatorError: "evaluator",
    OracleError: "oracle",
    TermError: "reward",
    SnapshotLost: "snapshot_gone",
    NotReproduced: "not_reproduced",
}
"""Errors after which the environment is still good -> the kind that is recorded."""


def claim(trajectory_id: int, ticket: str = "") -> Assignment | None:
    """Take the trajectory for this worker; None when another worker has it or it was cancelled.

    `ticket`: what a joined host got the job with.
    """
    close_old_connections()
    name = identity.current().name
    try:
        return reports().request(assignments.claim, trajectory_id, name, ticket)
    except ObjectDoesNotExist:  # the first heartbeat of its worker is still to come
        worker_row.beat()
        return reports().request(assignments.claim, trajectory_id, name, ticket)


def run(trajectory_id: int, ticket: str = "") -> None:
    """Body of the env job; `ticket`: what a joined host got it with."""
    with log_about(trajectory_id=trajectory_id):
        assignment = claim(trajectory_id, ticket)
        if assignment is None:
            return
        experiment_id = assignment.row.experiment_id
        try:
            with held(trajectory_id), log_about(**{"experiment_id": experiment_id} if experiment_id else {}):
                _run_recorded(assignment)
        finally:
            slots.reset_after_trajectory()


def _run_recorded(assignment: Assignment) -> None:
    """Run it, and record why it ended when it broke."""
    pk = assignment.row.pk
    try:
        _run_claimed(assignment)
    except (TrajectoryEnded, DemonstrationAbandoned):
        reports().report(end_cancelled, pk)
    except tuple(PLAIN_ERRORS) as error:
        kind = next(kind for known, kind in PLAIN_ERRORS.items() if isinstance(error, known))
        reports().report(end_errored, pk, kind, str(error))
    except AtCapacity as error:
        slots.drop_environment()
        limit_s = assignment.config.desktops.provider_section.parking_limit_s
        waits = (error.position, error.wait_s, error.retry_after_s, limit_s)
        reports().report(parking.park, pk, str(error), *waits)
    except EnvError as error:
        slots.drop_environment()
        reports().report(end_errored, pk, f"desktop_{error.kind}", str(error))
    except Exception as error:
        log.exception("trajectory %s broke", pk)
        slots.drop_environment()
        reports().report(end_errored, pk, _kind_of(error), f"env worker error: {error!r}")
        raise


def _kind_of(error: Exception) -> str:
    """What an error that nothing else explains is recorded as."""
    if outage_retries.is_disk_full(error):
        return "disk_full"
    return "database" if outage_retries.passes(error) else "worker"


def _run_claimed(assignment: Assignment) -> None:
    actor, row = _actor(assignment), assignment.row
    try:
        config = assignment.config
        environment = slots.clean_environment(
            config.desktops, assignment.task.screen, key_of(row.pk), texts_of(config.prompt)
        )
        if row.is_parked and not reports().request(parking.unpark, row.pk):
            raise TrajectoryEnded
        is_demonstration = assignment.source is Source.HUMAN
        with screen_offered(row.pk, environment, is_needed=is_demonstration):
            Rollout(assignment, environment, actor).run()
    finally:
        actor.close()


def _actor(assignment: Assignment) -> Actor:
    if assignment.source is Source.POLICY:
        return PolicyActor(assignment)
    if assignment.source is Source.ORACLE:
        return OracleActor(assignment.task)
    if assignment.script is not None:
        return ScriptedActor(assignment.script)
    if assignment.source in (Source.SCRIPTED, Source.HUMAN):  # a person acts before any actor is asked
        return IdleActor()
    raise ValueError(f"an env worker cannot run a trajectory of source {assignment.source}")
