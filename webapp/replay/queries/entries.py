"""What the replay pages read."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, CharField, Count, F, Max, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from training.contracts.types import Source
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord
from webapp.experiments.queries.experiment_choices import newest_and
from webapp.experiments.queries.weight_lineage import WeightLineage
from webapp.lib.request_values import BadValue
from webapp.live.event_publishing import cursor_of, last_seq
from webapp.replay.automatic_checks import Check, checks_of
from webapp.replay.filters import PROBLEMS, SORTS, EntryFilter
from webapp.replay.fit_for_experiments import fit_of, target_experiment
from webapp.replay.models import LabelEvent, ReplayEntry, ReplayUseRecord, Verdict
from webapp.replay.models.entries import stream_of
from webapp.replay.turn_edits import TurnEdit, edit_words
from webapp.trajectories.models import TurnRecord
from webapp.trajectories.turn_display import turn_json
from webapp.trajectories.viewer_parts import end_frame

PREFETCH = 3
"""Entries after the current one whose data and images the browser holds already."""
MAX_CHOICES = 50
PLAYER_COLUMNS = (
    "trajectory_id",
    "index",
    "frame",
    "width",
    "height",
    "action",
    "earlier_actions",
    "thought",
    "parse_error",
    "action_error",
    "terms",
    "source",
)
FLAWED = Count("id", filter=Q(has_bad_turns=True))
COMMON_TAGS = ("clean", "lucky", "detour", "wrong reason", "unsafe")


def entry_rows(team_id: int) -> QuerySet[ReplayEntry]:
    """Entries with what a queue row shows; newest first, those with bad turns last."""
    rows = ReplayEntry.objects.filter(team_id=team_id).select_related(
        "trajectory__task", "trajectory__experiment", "labelled_by"
    )
    return rows.defer("outline", "trajectory__task__spec", "trajectory__experiment__config").order_by(
        "has_bad_turns", "-id"
    )


def player_entries(
    team_id: int, entry_ids: Iterable[int], known: Iterable[ReplayEntry] = ()
) -> list[dict[str, Any]]:
    """Whole entries for the browser: turns, checks, label; three queries for any number of them, and two
    when all are `known`, rows of `entry_rows` that were read already; more for policies of other experiments.
    """
    ids = list(entry_ids)
    entries = {entry.pk: entry for entry in known if entry.pk in ids}
    if len(entries) < len(ids):
        entries = {entry.pk: entry for entry in entry_rows(team_id).filter(pk__in=ids)}
    turns: dict[int, list[TurnRecord]] = defaultdict(list)
    rows = TurnRecord.objects.filter(trajectory__in={entry.trajectory_id for entry in entries.values()})
    for turn in rows.only(*PLAYER_COLUMNS).order_by("trajectory_id", "index"):
        turns[turn.trajectory_id].append(turn)
    target, lineage = target_experiment(team_id) if entries else None, WeightLineage(team_id)
    return [
        entry_json(
            entry,
            turns[entry.trajectory_id],
            checks_of(entry, fit_of(entry, target, lineage) if target else None),
        )
        for entry in (entries[pk] for pk in ids if pk in entries)
    ]


def entry_json(entry: ReplayEntry, turns: list[TurnRecord], checks: list[Check]) -> dict[str, Any]:
    """One entry as curate.js reads it."""
    trajectory = entry.trajectory
    return {
        **label_json(entry),
        "trajectory": trajectory.pk,
        "instruction": trajectory.task.instruction,
        "family": entry.family,
        "source": trajectory.source,
        "experiment": trajectory.experiment.name if trajectory.experiment else "",
        "step": trajectory.step,
        "score": trajectory.score,
        "reward": trajectory.reward,
        "numUses": entry.num_uses,
        "trimmedTo": trimmed_to(entry, turns) if entry.has_bad_turns else None,
        "checks": [check_json(check) for check in checks],
        "turns": [{**turn_json(turn, with_raw=False), "thought": turn.thought} for turn in turns],
        "endFrame": end_frame(trajectory, turns),
    }


def trimmed_to(entry: ReplayEntry, turns: list[TurnRecord]) -> int:
    """The last good turn of an entry with bad ones, from 1; 0 when none is good."""
    try:
        return 1 + (TurnEdit.read(entry.edit).trimmed(turns).last or 0)
    except BadValue:
        return 0


def label_json(entry: ReplayEntry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "verdict": entry.verdict,
        "tags": entry.tags,
        "note": entry.note,
        "labelledBy": entry.labelled_by.get_username() if entry.labelled_by else "",
        "labelledAt": entry.labelled_at.isoformat() if entry.labelled_at else "",
    }


def check_json(check: Check) -> dict[str, Any]:
    return {"tone": check.tone, "text": check.text, "cluster": check.cluster}


@dataclass(frozen=True, slots=True)
class InboxCounts:
    """Of the rest of a filter, whatever its verdict."""

    by_verdict: dict[str, int]
    flawed: dict[str, int]
    """Of them, those with bad turns."""
    cursor: int
    """Of the inbox stream."""


def counts_and_cursor(team_id: int, chosen: EntryFilter) -> InboxCounts:
    """One query, unless nothing fits."""
    rows = chosen.apply_but_verdict(ReplayEntry.objects.filter(team_id=team_id)).order_by()
    stream = stream_of(team_id)
    found = rows.values("verdict").annotate(number=Count("id"), flawed=FLAWED, cursor=Max(cursor_of(stream)))
    counts, flawed = ({row["verdict"]: row[name] for row in found} for name in ("number", "flawed"))
    cursor = max((row["cursor"] or 0 for row in found), default=None)
    return InboxCounts(
        {verdict: counts.get(verdict, 0) for verdict in Verdict.values},
        flawed,
        last_seq(stream) if cursor is None else cursor,
    )


def coverage(team_id: int) -> list[dict[str, Any]]:
    """Family x verdict, with uses: which families the buffer can help."""
    rows = ReplayEntry.objects.filter(team_id=team_id).order_by()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for family, verdict, number in rows.values_list("family", "verdict").annotate(number=Count("id")):
        table[family][verdict] = number
    largest = max((max(row.values()) for row in table.values()), default=1)
    return [
        {
            "family": family,
            "cells": [
                {"verdict": verdict, "number": row[verdict], "percent": round(100 * row[verdict] / largest)}
                for verdict in Verdict.values
            ],
            "total": sum(row.values()),
        }
        for family, row in sorted(table.items())
    ]


@dataclass(frozen=True)
class Choices:
    """What the filters of the inbox offer."""

    families: list[str]
    experiments: list[tuple[str, str]]
    """(primary key as text, name), newest first."""
    scanners: list[tuple[str, str]]
    """(primary key as text, name with version)."""


def choices_of(team_id: int, experiment: str = "") -> Choices:
    """Families of all tasks (the entries are far more), experiments, and scanners; one query.

    `experiment`: the primary key of one that is named whatever its age.
    """
    families = TaskRecord.objects.of(team_id).exclude(family="").order_by()
    experiments = newest_and(experiment, team_id=team_id, limit=MAX_CHOICES)
    rows = list(
        families.annotate(number=Value(0, output_field=BigIntegerField()))
        .values_list("number", "family")
        .distinct()
        .union(
            experiments.order_by().values_list("pk", "name"),
            _scanners(team_id).values_list("number", "text"),
            all=True,
        )
    )
    return Choices(
        families=sorted(name for number, name in rows if not number),
        experiments=[(str(number), name) for number, name in sorted(rows, reverse=True) if number > 0],
        scanners=sorted(
            ((str(-number), name) for number, name in rows if number < 0), key=lambda row: row[1]
        ),
    )


def _scanners(team_id: int) -> QuerySet[Any]:
    """Scanners with their id below 0, to tell them from experiments."""
    text = Concat("name", Value(".v"), Cast("version", CharField()))
    return Team(pk=team_id).scanners.order_by().annotate(number=-F("pk"), text=text)


def filter_fields(team_id: int, chosen: EntryFilter) -> dict[str, Any]:
    """The context of `replay/parts/filter_fields.html`; one query."""
    choices = choices_of(team_id, chosen.experiment)
    return {
        "chosen": chosen,
        "families": choices.families,
        "experiments": choices.experiments,
        "scanners": choices.scanners,
        "sorts": SORTS.items(),
        "sources": tuple(Source),
        "problems": [(name, words) for name, (words, _) in PROBLEMS.items()],
        "common_tags": COMMON_TAGS,
        "verdict_choices": Verdict.choices,
    }


@dataclass(frozen=True)
class HistoryRow:
    """One label event in words."""

    event: LabelEvent
    changes: list[tuple[str, str, str]]
    """(what, before, after)"""
    is_standing: bool


def history_of(entry: ReplayEntry) -> list[HistoryRow]:
    """Who changed what, newest first."""
    events = list(entry.label_events.select_related("by").order_by("-id"))
    undone = {event.undoes_id for event in events if event.undoes_id}
    return [
        HistoryRow(event, changes_of(event), is_standing=event.pk not in undone and event.undoes_id is None)
        for event in events
    ]


def changes_of(event: LabelEvent) -> list[tuple[str, str, str]]:
    """The fields in which an event's `before` and `after` differ."""
    found = []
    for name in ("verdict", "tags", "note", "edit"):
        before, after = event.before.get(name), event.after.get(name)
        if before != after and (before or after):
            found.append((name, _words(before), _words(after)))
    if "part" in event.after:
        found.append(("split off", "", f"entry {event.after['part']}"))
    return found


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return edit_words(value)
    return ", ".join(value) if isinstance(value, list) else str(value or "")


def uses_of(entry: ReplayEntry) -> list[ReplayUseRecord]:
    """Where it was injected, newest first."""
    return list(entry.uses.select_related("experiment", "group", "replaced").order_by("-id")[:200])
