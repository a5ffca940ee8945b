"""Attacks and checks as groups of scripted runs, and what becomes of them.

An attack is paid (score >= PAID): an exploit, kept with its task. A check of a version runs every known
exploit of the task, which must not be paid any more, and its recorded successes, which must be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from training.contracts.types import FINAL_STATUSES, Purpose, Source, Task
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.attacks.attackers import Attacker, attackers_of, fork_attackers_of
from webapp.attacks.models import Exploit, RunKind, ScriptedRun
from webapp.attacks.scripts import Script, script_of_actions
from webapp.experiments.models import TaskRecord, TaskStatus
from webapp.lib.request_values import BadValue
from webapp.replay.models import Verdict
from webapp.trajectories.action_words import actions_of
from webapp.trajectories.models import Group, Snapshot, Trajectory
from webapp.trajectories.queries.branches import usable_snapshot
from webapp.trajectories.services.groups import GroupSpec, create_group

PAID = 0.5
"""Scores from here on count as success everywhere."""
MAX_OPEN = 100
"""Scripted runs of a task that may wait or run at a time."""
MAX_SUCCESSES = 30
"""Recorded successes with different actions that a check does again, the newest."""
LOOKED_AT = 300


@dataclass(frozen=True, slots=True)
class Planned:
    kind: RunKind
    name: str
    script: Script
    exploit: Exploit | None = None
    success: Trajectory | None = None


def attack_task(*, task: TaskRecord, team_id: int, user: User) -> Group:
    """Attack from the task's set-up, on default desktops. Raises BadValue."""
    return queue_attackers(task, team_id, user, attackers_of(Task.model_validate(task.spec)))


def queue_attackers(task: TaskRecord, team_id: int, user: User, attackers: Sequence[Attacker]) -> Group:
    """Have these attackers go on from the task's set-up. Raises BadValue."""
    return _queue(task, team_id, user, [Planned(RunKind.ATTACK, one.name, one.script) for one in attackers])


def attack_fork(*, trajectory: Trajectory, turn: int, user: User) -> Group:
    """Attack from the state that a machine had before a turn. Raises BranchRefused, BadValue.

    The first place only says that it is done: where that is paid, the turns before it had done the task.
    """
    snapshot = usable_snapshot(trajectory, turn)
    parent = snapshot.trajectory
    planned = [
        Planned(RunKind.ATTACK, f"{one.name}, from turn {turn + 1} of trajectory {parent.pk}", one.script)
        for one in fork_attackers_of(Task.model_validate(parent.task.spec))
    ]
    return _queue(parent.task, parent.team_id, user, planned, snapshot)


def check_version(*, task: TaskRecord, team_id: int, user: User) -> Group:
    """Run what a version has to stand. Raises BadValue where there is nothing to run."""
    planned = [
        Planned(RunKind.EXPLOIT, exploit.name, Script.model_validate(exploit.script), exploit=exploit)
        for exploit in exploits_of(task, team_id).filter(dismissed_why="")
    ]
    for row, script in recorded_successes(task, team_id):
        planned.append(Planned(RunKind.SUCCESS, f"trajectory {row.pk}", script, success=row))
    if not planned:
        raise BadValue("task", "there is neither a known exploit nor a recorded success of it")
    return _queue(task, team_id, user, planned)


def versions_of(task: TaskRecord) -> QuerySet[TaskRecord]:
    return TaskRecord.objects.filter(task_set=task.task_set_id, task_id=task.task_id)


def exploits_of(task: TaskRecord, team_id: int) -> QuerySet[Exploit]:
    """What was found in this version or an earlier one."""
    earlier = versions_of(task).filter(version__lte=task.version)
    return Exploit.objects.filter(team_id=team_id, task__in=earlier).select_related("task", "trajectory")


def recorded_successes(task: TaskRecord, team_id: int) -> list[tuple[Trajectory, Script]]:
    """Solved from the start by policy, oracle or person, in any version: one of each sequence of actions.

    Rejected entries are none: a person said that they are no success. Two queries.
    """
    rows = Trajectory.objects.filter(
        team_id=team_id,
        task__in=versions_of(task),
        score__gte=PAID,
        pruned_at=None,
        group__branch_turn=None,
    )
    rows = rows.exclude(purpose=Purpose.ATTACK).exclude(replay_entries__verdict=Verdict.REJECTED)
    newest = list(rows.order_by("-pk").prefetch_related("turns")[:LOOKED_AT])
    found: dict[str, tuple[Trajectory, Script]] = {}
    for row in newest:
        script = script_of_actions(action for turn in row.turns.all() for action in actions_of(turn))
        if script.actions and len(found) < MAX_SUCCESSES:
            found.setdefault(script.digest, (row, script))
    return list(found.values())


@transaction.atomic
def _queue(
    task: TaskRecord,
    team_id: int,
    user: User,
    planned: Sequence[Planned],
    snapshot: Snapshot | None = None,
) -> Group:
    if task.status != TaskStatus.SUPPORTED:
        raise BadValue("task", f"Deskhand's desktops cannot run it: {task.reason}")
    open_runs = Trajectory.objects.filter(team_id=team_id, task=task, purpose=Purpose.ATTACK)
    if open_runs.exclude(status__in=FINAL_STATUSES).count() + len(planned) > MAX_OPEN:
        raise BadValue("task", f"{MAX_OPEN} scripted runs of it may wait at a time; wait for some to end")
    group = create_group(
        request=GroupSpec(
            task=task,
            size=len(planned),
            purpose=Purpose.ATTACK,
            source=Source.SCRIPTED,
            snapshot=snapshot,
            desktops=snapshot.trajectory.desktop_config if snapshot else None,
        ),
        team_id=team_id,
    )
    ScriptedRun.objects.bulk_create(
        ScriptedRun(
            group=group,
            member=member,
            kind=one.kind,
            name=one.name[:120],
            script=one.script.model_dump(mode="json", exclude_none=True),
            exploit=one.exploit,
            success=one.success,
        )
        for member, one in enumerate(planned)
    )
    kinds = ", ".join(sorted({one.kind.value for one in planned}))
    log_action(
        AuditAction.LAUNCHED,
        person=user,
        team=team_id,
        kind="group",
        object_id=group.pk,
        runs=kinds,
    )
    return group


def script_of(row: Trajectory) -> Script | None:
    """What a claimed trajectory has to do; None for anything but a scripted run."""
    if row.purpose != Purpose.ATTACK:
        return None
    run = ScriptedRun.objects.filter(group=row.group_id, member=row.member).first()
    return Script.model_validate(run.script) if run else Script()


def note_scripted_run(row: Trajectory) -> None:
    """Keep attacks that were paid. Repeating is harmless.

    Those of a fork are kept once its first place was not paid for what it found.
    """
    if row.purpose != Purpose.ATTACK or row.score is None:
        return
    ended = [row]
    if row.group.branch_turn is not None:
        scored = row.group.trajectories.filter(score__isnull=False)
        idle = scored.filter(member=0).order_by("-pk").first()
        if idle is None or is_paid(idle):
            return
        ended = list(scored)
    for one in ended:
        if is_paid(one):
            _keep(one)


def is_paid(row: Trajectory) -> bool:
    return (row.score or 0.0) >= PAID


def _keep(row: Trajectory) -> None:
    """As an exploit, with what was done before a fork: it has to be repeatable without its snapshot."""
    run = ScriptedRun.objects.filter(group=row.group_id, member=row.member, kind=RunKind.ATTACK).first()
    if run is None:
        return
    script = Script.model_validate(run.script)
    if turn := row.group.branch_turn:
        before = row.turns.filter(index__lt=turn).order_by("index").values_list("action", flat=True)
        script = Script(actions=(*script_of_actions(before).actions, *script.actions))
    Exploit.objects.get_or_create(
        team_id=row.team_id,
        task_id=row.task_id,
        digest=script.digest,
        defaults={
            "name": run.name,
            "script": script.model_dump(mode="json", exclude_none=True),
            "score": row.score or 0.0,
            "trajectory": row,
        },
    )


@transaction.atomic
def dismiss_exploit(*, exploit: Exploit, user: User, why: str) -> None:
    """A person says that the script does the task; "" takes it back."""
    exploit.dismissed_by, exploit.dismissed_why = (user if why else None), why[:300]
    exploit.save(update_fields=["dismissed_by", "dismissed_why"])
    log_action(
        AuditAction.LABELLED,
        person=user,
        team=exploit.team_id,
        kind="exploit",
        object_id=exploit.pk,
        why=exploit.dismissed_why,
    )
