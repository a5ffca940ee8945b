"""Checked records of an import -> rows: a group of one, its trajectory with turns, and the entry."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from training.contracts.context_fingerprint import shared_fingerprint
from training.contracts.types import Purpose, TrajectoryStatus, Turn
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord
from webapp.lib.tags import MAX_TAGS
from webapp.replay.automatic_checks import longest_still_run, signature_of
from webapp.replay.models import ImportedLine, ReplayEntry, Verdict
from webapp.replay.services.labels import label_entry
from webapp.replay.turn_edits import NothingGood, TurnEdit
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.pictures.telling_frame import most_telling
from webapp.trajectories.services.turns import columns_of_texts, stored_actions

ASSUMED_TAG = "assumed-reward"


@dataclass
class Record:
    """One line, checked."""

    task: TaskRecord
    turns: list[Turn]
    reward: float
    is_reward_assumed: bool
    score: float
    source: str
    policy_version: int | None
    terms: list[dict[str, Any]] = field(default_factory=list)
    desktops: dict[str, int] = field(default_factory=dict)
    """{"max_turns"} under which it was recorded; empty when the line does not tell."""
    label: dict[str, Any] = field(default_factory=dict)
    """{"verdict", "tags", "note", "edit", "part"} of our own exports."""
    thoughts: dict[int, str] = field(default_factory=dict)
    """Turn -> what the agent said before its action, of our own exports."""
    imported: dict[str, Any] | None = None
    """Columns of `ImportedLine`; None for turns that Deskhand recorded."""


def store_record(record: Record, team: Team, user: User, keep_labels: bool) -> ReplayEntry:
    """A group of one, its trajectory with turns, and the entry."""
    now = timezone.now()
    screens = [turn.observation.sha256 for turn in record.turns if turn.observation.sha256]
    group = Group.objects.create(
        team=team,
        task=record.task,
        purpose=Purpose.DEMONSTRATION,
        source=record.source,
        desktops=record.desktops,
        size=1,
        num_final=1,
        num_scored=1,
        reward_mean=record.reward,
        finished_at=now,
    )
    trajectory = Trajectory.objects.create(
        team=team,
        group=group,
        task=record.task,
        family=record.task.family,
        purpose=Purpose.DEMONSTRATION,
        source=record.source,
        status=TrajectoryStatus.TERMINATED,
        policy_version=record.policy_version,
        fingerprint=shared_fingerprint(record.turns) or None,
        num_turns=len(record.turns),
        num_parse_errors=sum(bool(turn.parse_error) for turn in record.turns),
        score=record.score,
        reward=record.reward,
        terms=record.terms,
        last_frame=screens[-1] if screens else "",
        thumbnail=most_telling(screens),
        started_at=now,
        ended_at=now,
    )
    made = [turn_row(trajectory, turn, record.thoughts.get(turn.index, "")) for turn in record.turns]
    rows = TurnRecord.objects.bulk_create(made)
    entry = ReplayEntry.objects.create(
        team=team,
        trajectory=trajectory,
        part=record.label.get("part", 0),
        family=trajectory.family,
        signature=signature_of(record.task.pk, rows),
        num_still=longest_still_run(rows),
        has_bad_turns=bool(TurnEdit().bad_turns(rows)),
        tags=[ASSUMED_TAG] if record.is_reward_assumed else [],
    )
    if record.imported is not None:
        ImportedLine.objects.create(entry=entry, **record.imported)
    if keep_labels and record.label.get("verdict") in Verdict.values:
        _keep_label(entry, record, user)
    return entry


def _keep_label(entry: ReplayEntry, record: Record, user: User) -> None:
    """The label of the file; an entry without a good turn stays in the inbox."""
    tags = list(dict.fromkeys([*entry.tags, *record.label.get("tags", [])]))
    try:
        label_entry(
            entry=entry,
            user=user,
            verdict=record.label["verdict"],
            tags=tags[:MAX_TAGS],
            note=record.label.get("note", ""),
            edit=record.label.get("edit", {}),
            trim=True,
        )
    except NothingGood:
        label_entry(entry=entry, user=user, tags=tags[:MAX_TAGS], note=record.label.get("note", ""))


def turn_row(trajectory: Trajectory, turn: Turn, thought: str = "") -> TurnRecord:
    """A wire turn as a row."""
    now = timezone.now()
    return TurnRecord(
        trajectory=trajectory,
        index=turn.index,
        source=turn.source,
        frame=turn.observation.sha256,
        width=turn.observation.width,
        height=turn.observation.height,
        observation_text=turn.observation.text,
        completion=turn.completion and turn.completion.model_dump(mode="json"),
        thought=thought,
        action=turn.action and turn.action.model_dump(mode="json", exclude_defaults=True),
        earlier_actions=stored_actions(turn.earlier_actions),
        dialect=turn.dialect,
        parse_error=turn.parse_error or "",
        action_error=turn.action_error or "",
        screen_changed=turn.screen_changed,
        **columns_of_texts(turn.observation),
        measured=turn.measured and turn.measured.model_dump(mode="json"),
        terms=[term.model_dump(mode="json") for term in turn.terms],
        is_context=turn.is_context,
        observed_at=now,
        completed_at=now,
        acted_at=now,
    )
