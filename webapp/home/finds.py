"""What Ctrl+K finds: rows by number, rows by name, and what may be done with an experiment."""

from typing import Any

from django.db.models import Model, Q
from django.urls import reverse

from webapp.accounts.models import Membership, Role
from webapp.experiments.models import (
    Experiment,
    Sweep,
    TaskRecord,
    TaskSet,
)
from webapp.lib.request_values import row_id
from webapp.replay.models import ReplayEntry
from webapp.reports.models import Report
from webapp.trajectories.models import Group, Trajectory

MAX_NAMED = 6
ENTRY = "Replay entry"
BY_NUMBER: tuple[tuple[str, type[Model], str], ...] = (
    ("Trajectory", Trajectory, "trajectory-detail"),
    ("Group", Group, "group-detail"),
    (ENTRY, ReplayEntry, "replay-detail"),
    ("Sweep", Sweep, "sweep-detail"),
    ("Report", Report, "report-detail"),
)
"""Word, model with a team, its page."""
VERBS = {
    "pause": "It stops after this step and can be resumed.",
    "resume": "",
    "cancel": "It cannot be resumed. What it recorded stays.",
}
"""What may be done with an experiment, and what the question before it says; "" asks nothing."""

WORDS_BEFORE = (*VERBS, "clone", "open", "label")
"""May stand before a number or a name."""

Found = dict[str, Any]


def found_for(held: Membership, text: str) -> list[Found]:
    """Best first. "12", "#12" and "cancel 12" are numbers, all else is part of a name."""
    first, _, rest = text.partition(" ")
    verb = first.lower() if rest and first.lower() in WORDS_BEFORE else ""
    wanted = (rest if verb else text).strip()
    number = row_id(wanted.lstrip("#"))
    others = _numbered(held, number) if number is not None else _named(held, wanted)
    if verb == "label":
        return [one for one in others if one["title"].startswith(ENTRY)]
    named = Q(pk=number) if number is not None else Q(name__icontains=wanted)
    rows = Experiment.objects.filter(named, team=held.team_id).defer("config").order_by("-pk")[:MAX_NAMED]
    deeds = [deed for one in rows for deed in _deeds(one, held) if verb in ("", "open", deed["verb"])]
    pages = [_page(f"#{one.pk} {one.name}", one.status, "experiment-detail", one.pk) for one in rows]
    return [*deeds, *pages] if verb and verb != "open" else [*pages, *others, *deeds]


def _page(title: str, detail: str, route: str, *args: object) -> Found:
    return {"title": title, "detail": detail, "url": reverse(route, args=args)}


def _deeds(one: Experiment, held: Membership) -> list[Found]:
    if not Role(held.role).includes(Role.OPERATOR):
        return []
    can = one.possible_actions
    done = [
        {
            "verb": verb,
            "title": f"{verb.capitalize()} #{one.pk} {one.name}",
            "detail": "",
            "url": reverse(f"experiment-{verb}", args=[one.pk]),
            "post": True,
            "confirm": f"{verb.capitalize()} #{one.pk}?" if detail else "",
            "confirm_detail": detail,
        }
        for verb, detail in VERBS.items()
        if verb in can
    ]
    launch = f"{reverse('experiment-launch')}?clone={one.pk}"
    return [*done, {"verb": "clone", "title": f"Clone #{one.pk} {one.name}", "detail": "", "url": launch}]


def _numbered(held: Membership, number: int) -> list[Found]:
    return [
        _page(f"{word} {number}", "", route, number)
        for word, model, route in BY_NUMBER
        if model._default_manager.filter(team=held.team_id, pk=number).exists()
    ]


def _named(held: Membership, text: str) -> list[Found]:
    sets = TaskSet.objects.listed(held.team_id).filter(Q(name__icontains=text) | Q(title__icontains=text))
    current = TaskRecord.objects.of(held.team_id).current().with_words(text)
    tasks = current.select_related("task_set")[:MAX_NAMED]
    reports = Report.objects.filter(team=held.team_id, title__icontains=text)
    return [
        *(_page(one.title or one.name, "Task set", "task-set", one.name) for one in sets[:MAX_NAMED]),
        *(_page(one.title, "Report", "report-detail", one.pk) for one in reports[:MAX_NAMED]),
        *(_page(one.task_id, one.instruction, "task-show", one.task_set.name, one.pk) for one in tasks),
    ]
