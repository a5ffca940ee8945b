"""What waits for a person: runs that went bad, alarms, labels, people at desktops."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.urls import reverse
from django.utils import timezone

from training.contracts.number_text import counted
from webapp.accounts.models import Team
from webapp.analysis.verdict.outcomes import RunOutcome
from webapp.experiment_pages.experiment_table import OWNER_NOT_SHOWN, Row, list_rows
from webapp.experiments.models import (
    ACTIVE_STATUSES,
    AlarmRecord,
    AlarmStatus,
    Experiment,
    ExperimentStatus,
)
from webapp.replay.models import ReplayEntry, ReviewLabel, Verdict
from webapp.screens.models import ACTIVE_CONTROLS, Control

RECENT = timedelta(days=7)
MAX_ROWS = 30
BAD_OUTCOMES = (RunOutcome.COLLAPSED, RunOutcome.WORSE, RunOutcome.BABBLES)


@dataclass(frozen=True, slots=True)
class Need:
    """One line: what it is, and where it is done."""

    icon: str
    tone: str
    title: str
    detail: str
    url: str
    action: str


@dataclass(frozen=True, slots=True)
class Runs:
    """Of the team, newest first."""

    active: list[Row]
    ended: list[Row]
    """Lately, archived ones and samples left out."""
    num_queued: int


def runs_of(team: Team) -> Runs:
    """Running and lately ended experiments as the list shows them."""
    lately = Q(ended_at__gte=timezone.now() - RECENT)
    rows = Experiment.objects.filter(team=team, is_sample=False, archived_at=None)
    rows = rows.filter(lately | Q(status__in=ACTIVE_STATUSES)).select_related("owner", "team__prices")
    found = list_rows(rows.defer("config", *OWNER_NOT_SHOWN).order_by("-pk")[:MAX_ROWS])
    is_active = [row.experiment.status in ACTIVE_STATUSES for row in found]
    return Runs(
        [row for row, active in zip(found, is_active, strict=True) if active],
        [row for row, active in zip(found, is_active, strict=True) if not active],
        Experiment.objects.filter(team=team, status=ExperimentStatus.QUEUED).count(),
    )


def needs_of(team: Team, person: User, ended: list[Row]) -> list[Need]:
    """The most urgent kind first."""
    return [*_people(team), *_alarms(team), *_bad_runs(ended), *_labels(team, person)]


def _people(team: Team) -> list[Need]:
    held = Control.objects.filter(trajectory__team=team, status__in=ACTIVE_CONTROLS)
    return [
        Need(
            "cursor",
            "info",
            f"{control.user.username} is at a desktop",
            control.trajectory.task.instruction,
            reverse("desktop-show", args=[control.trajectory_id]),
            "Watch",
        )
        for control in held.select_related("user", "trajectory__task")[:MAX_ROWS]
    ]


def _alarms(team: Team) -> list[Need]:
    """Of runs that go on: those of an ended run are history."""
    active = AlarmRecord.objects.filter(
        experiment__team=team, experiment__status__in=ACTIVE_STATUSES, status=AlarmStatus.ACTIVE
    )
    return [
        Need(
            "alert",
            "warning",
            f"#{alarm.experiment_id} {alarm.experiment.name}: {alarm.guard.title}",
            alarm.message,
            reverse("alarm-show", args=[alarm.experiment_id, alarm.name]),
            "Look into it",
        )
        for alarm in active.select_related("experiment").order_by("-at")[:MAX_ROWS]
    ]


def _bad_runs(ended: list[Row]) -> list[Need]:
    needs = []
    for row in ended:
        one, outcome = row.experiment, row.outcome
        has_failed = one.status == ExperimentStatus.FAILED
        if not has_failed and outcome not in BAD_OUTCOMES:
            continue
        said = "Failed" if has_failed else str(outcome and outcome.label)
        url = reverse("experiment-detail", args=[one.pk])
        needs.append(Need("alert", "bad", f"#{one.pk} {one.name}: {said}", one.message, url, "See why"))
    return needs


def _labels(team: Team, person: User) -> list[Need]:
    waiting = ReplayEntry.objects.filter(team=team, verdict=Verdict.INBOX).aggregate(
        number=Count("pk"), clusters=Count("cluster", distinct=True)
    )
    mine = ReviewLabel.objects.filter(person=person, verdict="", item__round__team=team).count()
    needs = []
    if mine:
        url = reverse("replay-reviews")
        needs.append(
            Need("eye", "info", f"{counted(mine, 'review label')} of yours are open", "", url, "Label")
        )
    if number := waiting["number"]:
        title = f"The replay inbox waits: {counted(number, 'trajectory', 'trajectories')}"
        detail = f"in about {counted(waiting['clusters'], 'cluster')}" if waiting["clusters"] else ""
        needs.append(Need("inbox", "neutral", title, detail, reverse("replay-inbox"), "Label"))
    return needs
