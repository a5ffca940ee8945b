"""The env job: one trajectory on this slot's desktop.

lease (kept between trajectories) -> reset -> turns -> evaluate -> report; whatever breaks ends
the trajectory as `errored` with a kind, and never as a reward.
"""

from __future__ import annotations

import logging

import httpx
from django.db import close_old_connections

from training.contracts.types import Source
from workers import lifecycle
from workers.desktops.contract import EnvError
from workers.env import reporting, slots
from workers.env.actors import Actor, IdleActor, OracleActor, PolicyActor
from workers.env.branches import SnapshotLost
from workers.env.episode import Episode, Stopped
from workers.env.policy_client import PolicyError
from workers.env.reporting import Assignment, NoPolicy
from workers.env.takeover.person_in_control import Abandoned, watched
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
    SnapshotLost: "snapshot_gone",
}
"""Errors after which the environment is still good -> the kind that is recorded."""


def run(trajectory_id: int) -> None:
    """Body of the env job."""
    close_old_connections()
    assignment = reporting.claim(trajectory_id)
    if assignment is None:
        return
    lifecycle.hold(trajectory_id)
    try:
        _run_claimed(assignment)
    except (Stopped, Abandoned):
        reporting.cancelled(assignment.row)
    except tuple(PLAIN_ERRORS) as error:
        kind = next(kind for known, kind in PLAIN_ERRORS.items() if isinstance(error, known))
        reporting.errored(assignment.row, kind, str(error))
    except AtCapacity as error:
        slots.drop_environment()
        reporting.park(assignment.row, error, _parking_limit_s(assignment))
    except EnvError as error:
        slots.drop_environment()
        reporting.errored(assignment.row, f"desktop_{error.kind}", str(error))
    except Exception as error:
        log.exception("trajectory %s broke", trajectory_id)
        slots.drop_environment()
        reporting.errored(assignment.row, "worker", f"env worker error: {error!r}")
        raise
    finally:
        lifecycle.let_go(trajectory_id)
        slots.reset_soon()


def _run_claimed(assignment: Assignment) -> None:
    actor = _actor(assignment)
    try:
        desktops, screen = assignment.config.desktops, assignment.task.screen
        environment = slots.clean_environment(desktops, screen, reporting.key_of(assignment.row))
        if not reporting.unpark(assignment.row):
            raise Stopped
        is_persons = assignment.source is Source.HUMAN
        with watched(assignment.row.pk, environment, is_persons=is_persons):
            Episode(assignment, environment, actor).run()
    finally:
        actor.close()


def _parking_limit_s(assignment: Assignment) -> float:
    return assignment.config.desktops.provider_section.parking_limit_s


def _actor(assignment: Assignment) -> Actor:
    if assignment.source is Source.POLICY:
        return PolicyActor(assignment)
    if assignment.source is Source.ORACLE:
        return OracleActor(assignment.task)
    if assignment.source in (Source.SCRIPTED, Source.HUMAN):  # a person acts before any actor is asked
        return IdleActor()
    raise ValueError(f"an env worker cannot run a trajectory of source {assignment.source}")
