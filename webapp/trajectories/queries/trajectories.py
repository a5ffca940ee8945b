"""What the trajectory pages read."""

from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from webapp.live.models import Stream
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.turn_display import BriefTurn


def list_rows(team_id: int) -> QuerySet[Trajectory]:
    """Trajectories as the list shows them: no reward breakdown, no turns."""
    return (
        Trajectory.objects.filter(team_id=team_id)
        .select_related("task", "experiment")
        .only(
            "id",
            "status",
            "family",
            "purpose",
            "source",
            "member",
            "tries",
            "step",
            "policy_version",
            "num_turns",
            "num_parse_errors",
            "score",
            "reward",
            "advantage",
            "error_kind",
            "parked_at",
            "parking",
            "last_frame",
            "thumbnail",
            "group_id",
            "created_at",
            "started_at",
            "ended_at",
            "task__instruction",
            "task__task_id",
            "experiment__name",
        )
    )


def turns_of(trajectory: Trajectory) -> list[TurnRecord]:
    """All turns in order, with their completions."""
    return list(trajectory.turns.order_by("index"))


def brief_turns(trajectory: Trajectory) -> list[BriefTurn]:
    """All turns in order."""
    return [BriefTurn(*row) for row in brief_rows(trajectory.turns.order_by("index"))]


def brief_rows(turns: QuerySet[TurnRecord], *more: Any) -> QuerySet[TurnRecord, Any]:
    """The fields of a `BriefTurn` of each, in their order; `more`: expressions for the last ones."""
    action_json, terms_json = Cast("action", TextField()), Cast("terms", TextField())
    earlier_json = Cast("earlier_actions", TextField())
    return turns.values_list(
        *("trajectory_id", "index", "frame", "width", "height"),
        *(action_json, "parse_error", "action_error", terms_json, "source", earlier_json, *more),
    )


def list_cursors(rows: list[Trajectory]) -> None:
    """Give each row that has not ended the cursor of its stream, so that its status can follow; one query."""
    names = {f"trajectory.{row.pk}": row for row in rows if not row.is_final}
    known = dict(Stream.objects.filter(name__in=names).values_list("name", "last_seq"))
    for name, row in names.items():
        row.cursor = known.get(name, 0)  # type: ignore[attr-defined]


def replay_entries_of(trajectory: Trajectory) -> list[Any]:
    """Its entry in the replay buffer, or those of its parts in their order."""
    return list(trajectory.replay_entries.select_related("labelled_by").order_by("part"))


def replay_uses_of(entry: Any) -> list[Any]:
    """Where a replay entry was injected, newest first."""
    return list(entry.uses.select_related("experiment", "group", "replaced").order_by("-id")[:20])
