"""Hosts with one row of each kind, and the arguments with which each call names what one of them owns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core import signing
from django.utils import timezone

from testing.factories import (
    make_attempt,
    make_experiment,
    make_frame,
    make_group,
    make_trajectory,
    make_user,
)
from testing.fleet_rows import make_desktop, make_host, make_joined_host
from webapp.accounts.models import Team
from webapp.experiments.models import (
    Attempt,
    AttemptStatus,
    CheckpointExport,
    CheckpointRecord,
    Experiment,
    ExperimentStatus,
    ExportStatus,
    GangMember,
)
from webapp.fleet.models import Desktop, DesktopPhase, Host, Operation, Verb, Worker
from webapp.fleet.services.workers import beat_worker
from webapp.screens.models import Control, ControlStatus
from webapp.screens.relay_tickets import SALT
from webapp.tasks_library.models import Draft
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.worker_door.job_tickets import make_ticket

SECRET = "s"
NOW = "2026-11-26T12:00:00Z"
FIGURES = {
    **{"last_reset_s": 1.0, "lease_until": None, "cpu_percent": 1.0, "memory_mb": 1.0, "num_processes": 1},
    "born_at": NOW,
}


@dataclass
class Owner:
    """A host and what is its own."""

    name: str
    team: Team
    env: Worker
    gpu: Worker
    desktop: Desktop
    remote: Desktop
    running: Trajectory
    queued: Trajectory
    attempt: Attempt
    placed: Attempt
    """An ended one, of an experiment that is placed on this host again."""
    control: Control
    draft: Draft
    operation: Operation
    checkpoint: CheckpointRecord
    export: CheckpointExport
    frame: str


def make_owner(
    name: str, team: Team, *, is_joined: bool = True, roles: tuple[str, ...] = ("env", "gpu")
) -> Owner:
    """All of its rows."""
    if is_joined:
        make_joined_host(name, SECRET, roles=roles)
    else:
        make_host(name)
    env, gpu = (
        beat_worker(
            name=f"{queue}1@{name}", queue=queue, host=name, pid=1, slots=2, version="1", is_joined=is_joined
        )
        for queue in ("env", "gpu")
    )
    experiment = make_experiment(team=team)
    attempt = make_attempt(experiment, worker_name=gpu.name, status=AttemptStatus.RUNNING)
    GangMember.objects.create(attempt=attempt, host=0, worker_name=gpu.name)
    placed = make_attempt(
        make_experiment(
            team=team,
            status=ExperimentStatus.QUEUED,
            placed_worker=gpu.name,
            placed_keys=[],
            dispatched_at=timezone.now(),
        ),
        worker_name=gpu.name,
        status=AttemptStatus.CRASHED,
        ended_at=timezone.now(),
    )
    running = make_trajectory(experiment=experiment, status="running", worker=env, turns=1)
    checkpoint = CheckpointRecord.objects.create(
        experiment=experiment, step=1, policy_version=1, path=f"/{name}/checkpoint", copy_sha256="0" * 64
    )
    return Owner(
        name=name,
        team=team,
        env=env,
        gpu=gpu,
        desktop=make_desktop(f"d-{name}", host=name, holder=f"{env.name}/t0", worker=env),
        remote=make_desktop(f"r-{name}", host=name, mirrored_at=None, phase=DesktopPhase.LEASED),
        running=running,
        queued=make_trajectory(group=make_group(team=team), status="queued", turns=0),
        attempt=attempt,
        placed=placed,
        control=Control.objects.create(
            trajectory=running,
            user=make_user(team=team),
            status=ControlStatus.REQUESTED,
            expires_at=timezone.now() + timedelta(hours=1),
        ),
        draft=Draft.objects.create(trajectory=running, steps=[{"step": {}, "is_done": False, "error": ""}]),
        operation=Operation.objects.create(
            verb=Verb.KILL, kind="desktop", target=f"d-{name}", host=name, asked_by_name="a"
        ),
        checkpoint=checkpoint,
        export=CheckpointExport.objects.create(
            checkpoint=checkpoint,
            dtype="float32",
            host=name,
            worker_name=gpu.name,
            status=ExportStatus.RUNNING,
        ),
        frame=make_frame(team, index=len(name)),
    )


def rows_of(owner: Owner) -> list[Any]:
    """Everything of its rows."""
    objects = [value for value in vars(owner).values() if hasattr(value, "pk")]
    found = [type(one).objects.filter(pk=one.pk).values().get() for one in objects]
    experiments = [owner.attempt.experiment_id, owner.placed.experiment_id]
    return [
        *found,
        *Experiment.objects.filter(pk__in=experiments).order_by("pk").values(),
        *Host.objects.filter(name=owner.name).values(),
        *TurnRecord.objects.filter(trajectory=owner.running).order_by("pk").values(),
        *GangMember.objects.filter(attempt=owner.attempt).values(),
    ]


def call_table(own: Owner) -> dict[str, dict[str, Any]]:
    """Call -> arguments (JSON) that name rows of `own`; a call that names none has no arguments."""
    trajectory, attempt, host = own.running.pk, own.attempt.pk, own.name
    of_trajectory = {"trajectory_id": trajectory}
    of_attempt = {"attempt_id": attempt}
    of_export = {"export_id": own.export.pk}
    saved = {"pk": own.checkpoint.pk, "step": 1, "path": own.checkpoint.path, "copy_sha256": ""}
    saved |= {"is_copied": False, "copy_prefix": ""}
    observation = {"sha256": own.frame, "width": 8, "height": 8}
    return {
        "claim": {
            "trajectory_id": own.queued.pk,
            "worker_name": own.env.name,
            "ticket": make_ticket(own.queued.pk, host),
        },
        "claim_attempt": {
            "experiment_id": own.placed.experiment_id,
            "number": own.placed.number + 1,
            "worker_name": own.gpu.name,
        },
        "runnable_config": of_attempt,
        "record_pinned": of_attempt | {"model": "", "reference": ""},
        "beat_attempt": of_attempt,
        "is_current": of_attempt,
        "start_attempt": of_attempt
        | {"policy_url": "https://x", "policy_token": "t", "policy_certificate": "PEM"},
        "record_gpus_held": of_attempt | {"number": 7},
        "tell_start": of_attempt | {"message": "m"},
        "tell_disk_wait": of_attempt | {"shortage": "m"},
        "end_finished": of_attempt,
        "end_stopped": of_attempt | {"reason": "r"},
        "end_crashed": of_attempt | {"reason": "r", "max_restarts": 0},
        "end_incomplete": of_attempt | {"reason": "r"},
        "cancel_groups": of_attempt | {"up_to_own": False},
        "call_gang": of_attempt | {"workers": [own.gpu.name], "secret": "s"},
        "come": of_attempt | {"host": 0, "worker_name": own.gpu.name, "address": "a:1"},
        "leave": of_attempt | {"host": 0, "problem": "p", "is_left_alone": False},
        "gathering": of_attempt,
        "record_gpus": {"name": own.gpu.name, "gpus": [], "cpu_places": 64, "address": "a:1"},
        "record_gpu_sample": of_attempt | {"look": {"gpus": [], "processes": []}},
        "tell_log": of_attempt | {"name": "trainer", "text": "x\n"},
        "claim_mirror": {"host": host, "by": own.env.name, "again": False},
        "wanted_desktops": {"host": host},
        "hand_over_mirror": {"host": host, "by": own.env.name},
        "record_problem": {"host": host, "problem": "p"},
        "record_host": {
            "host": host,
            "state": {"values": {"max_desktops": 3, "providers": []}, "desktops": [], "failures": []},
        },
        "record_changes": {
            "host": host,
            "by": own.env.name,
            "changes": {
                "values": {"load": 9.0},
                "desktops": [],
                "figures": {own.desktop.name: FIGURES},
                "gone": [own.desktop.name],
            },
        },
        "sample_host": {"host": host},
        "take_operations": {"host": host},
        "end_operation": {"operation_id": own.operation.pk, "outcome": "o", "is_done": True},
        "live_on_desktop": {"name": own.desktop.name},
        "take_away": of_trajectory | {"error": "e"},
        "read_ticket": {"ticket": signing.dumps(trajectory, salt=SALT)},
        "open_screen": of_trajectory | {"addresses": ["tcp:10.0.0.7:5900"]},
        "close_screen": of_trajectory,
        "active_control": of_trajectory,
        "wanted_of_draft": of_trajectory | {"num_done": 0},
        "note_draft_step": of_trajectory | {"index": 0, "error": "x"},
        "note_draft_state": of_trajectory | {"moment": "clean", "state": {"home": "/x"}, "num_turns": 0},
        "grant_control": {"control_id": own.control.pk},
        "refresh_control": {"control_id": own.control.pk},
        "human_actions": {"control_id": own.control.pk, "first": 0},
        "beat_trajectories": {"trajectory_ids": [trajectory]},
        "look_at": {"trajectory_ids": [trajectory]},
        "begin_running": of_trajectory
        | {"desktop_id": own.desktop.name, "host": host, "provider": "x11", "screen": [8, 8]},
        "begin_evaluating": of_trajectory,
        "open_turn": of_trajectory
        | {"index": 1, "source": "policy", "observation": observation, "observed_at": NOW},
        "close_turn": of_trajectory
        | {"turn": {"index": 0, "observation": observation, "source": "policy"}}
        | {"thought": "t", "completed_at": NOW, "spent_ms": None},
        "record_final_screen": of_trajectory | {"frame": own.frame},
        "record_checks": of_trajectory | {"checks": []},
        "record_milestones": of_trajectory | {"reached": []},
        "finish": of_trajectory
        | {"status": "terminated", "score": 1.0, "reward": 1.0, "terms": [], "turn_terms": {}}
        | {"fingerprint": "", "limit": None},
        "end_errored": of_trajectory | {"kind": "k", "error": "e"},
        "end_cancelled": of_trajectory,
        "read_screenshot": {"sha256": own.frame},
        "park": of_trajectory
        | {"reason": "r", "position": None, "wait_s": None, "retry_after_s": None, "limit_s": 0.0},
        "unpark": of_trajectory,
        "end_remote_desktop": {"desktop_id": own.remote.name},
        "checkpoints_to_resume": of_attempt,
        "why_not_here": of_attempt | {"newest": saved, "why": "w"},
        "go_on_from_older": of_attempt | {"chosen": saved, "newest": saved, "why": "w"},
        "copied_checkpoint": {"model_path": own.checkpoint.path},
        "record_copy": {"checkpoint_id": own.checkpoint.pk, "copy_sha256": "1" * 64},
        "forget_copy": {"checkpoint_id": own.checkpoint.pk},
        "waiting_exports": {"worker_name": own.gpu.name},
        "claim_export": of_export | {"worker_name": own.gpu.name, "host": host, "folder": "/x"},
        "card_of": of_export,
        "report_export": of_export | {"done_bytes": 1, "total_bytes": 2},
        "finish_export": of_export | {"size_bytes": 1},
        "fail_export": of_export | {"message": "m"},
        "uncopied_exports": {"host": host},
        "record_export_copy": of_export | {"copy_sha256": "1" * 64},
        "removable_exports": {"host": host},
        "confirm_removal": of_export,
        "record_snapshot": of_trajectory
        | {"turn": 0, "host": host, "name": "s", "size_mb": 1.0, "pause_s": 0.1, "took_s": 0.1},
        "record_snapshot_problem": of_trajectory | {"problem": "p"},
        "record_lost_snapshot": {"host": host, "name": "s"},
        "unknown_snapshots": {"host": host, "created": {}, "asked_at": NOW},
        "beat_worker": {"name": own.env.name, "queue": "env", "host": host}
        | {"pid": 99, "slots": 1, "version": "1", "clock_s": 1.0},
        "stop_worker": {"name": own.env.name, "pid": 1},
        "begin_anew": {"worker_name": own.env.name},
        "take_gpu_jobs": {"worker_name": own.gpu.name},
        "take_jobs": {"worker_name": own.env.name, "count": 0},
        "answer_trainer": of_attempt | {"route": "GET /checkpoints/in-use", "request": "{}", "key": "k"},
        "take_report": of_attempt | {"route": "POST /metrics", "request": '{"step": 1, "values": {}}'},
        # These name nothing: they answer with the caller's own, or do what any host may have done.
        "forget_old": {},
        "unended_trajectories": {},
        "gateways_in_use": {},
        "wanting_copies": {},
        "unneeded_copies": {},
    }
