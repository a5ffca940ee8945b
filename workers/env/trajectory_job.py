"""The env job: one trajectory on this slot's desktop.

lease (kept between trajectories) -> reset -> turns -> evaluate -> report; whatever breaks ends
the trajectory as `errored` with a kind, and never as a reward.
"""

from __future__ import annotations

import logging

import httpx

from training.contracts.log_lines import log_about
from training.contracts.types import Source
from training.rewards.expressions import TermError
from workers.desktops.contract import EnvError
from workers.env import slots
from workers.env.actors import Actor, IdleActor, OracleActor, PolicyActor, ScriptedActor
from workers.env.policy_client import PolicyError
from workers.env.reporting import parking_reports, trajectories
from workers.env.reporting.claims import Assignment, NoPolicy, claim
from workers.env.rollout import Rollout, TrajectoryEnded
from workers.env.running_trajectories import held
from workers.env.takeover.screen_offer import screen_offered
from workers.env.takeover.takeovers import DemonstrationAbandoned
from workers.env.turn_snapshots import SnapshotLost
from workers.environments.registry import AtCapacity
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
}
"""Errors after which the environment is still good -> the kind that is recorded."""


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
    row = assignment.row
    try:
        _run_claimed(assignment)
    except (TrajectoryEnded, DemonstrationAbandoned):
        trajectories.end_cancelled(row)
    except tuple(PLAIN_ERRORS) as error:
        kind = next(kind for known, kind in PLAIN_ERRORS.items() if isinstance(error, known))
        trajectories.end_errored(row, kind, str(error))
    except AtCapacity as error:
        slots.drop_environment()
        parking_reports.park(row, error, _parking_limit_s(assignment))
    except EnvError as error:
        slots.drop_environment()
        trajectories.end_errored(row, f"desktop_{error.kind}", str(error))
    except Exception as error:
        log.exception("trajectory %s broke", row.pk)
        slots.drop_environment()
        trajectories.end_errored(row, trajectories.kind_of(error), f"env worker error: {error!r}")
        raise


def _run_claimed(assignment: Assignment) -> None:
    actor = _actor(assignment)
    try:
        environment = slots.clean_environment(
            assignment.config.desktops, assignment.task.screen, parking_reports.key_of(assignment.row)
        )
        if not parking_reports.unpark(assignment.row):
            raise TrajectoryEnded
        is_demonstration = assignment.source is Source.HUMAN
        with screen_offered(assignment.row.pk, environment, is_needed=is_demonstration):
            Rollout(assignment, environment, actor).run()
    finally:
        actor.close()


def _parking_limit_s(assignment: Assignment) -> float:
    return assignment.config.desktops.provider_section.parking_limit_s


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
