"""The whole proposal of a draft: a task without words, and the checks that people choose from."""

from dataclasses import asdict, dataclass
from typing import Any

from webapp.tasks_library.models import Draft
from webapp.tasks_library.proposed.checks import checks
from webapp.tasks_library.proposed.set_up import set_up, unknown_files

DONE = {"kind": "terminate", "status": "success"}
FEW = 10
"""Actions that every experiment's limit of turns has room for."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the editor begins with."""

    values: dict[str, Any]
    """Keys of the task's JSON; its evaluator follows from the checks that are chosen."""
    checks: list[dict[str, Any]]
    missing: list[str]
    """Files that the set-up would need and that are too large to be kept in a task."""


def propose(draft: Draft) -> Proposal:
    clean, start, end = draft.clean, draft.start, draft.end
    requested = [entry["step"] for entry in draft.steps if entry["is_done"] and not entry["error"]]
    turns = draft.trajectory.turns.filter(index__gte=draft.start_turn or 0).order_by("index")
    done = [turn.action for turn in turns if turn.action and not turn.action_error]
    actions = [action for action in done if action["kind"] != DONE["kind"]]
    values = {
        "screen": draft.trajectory.task.spec["screen"],
        "config": set_up(clean, start, requested),
        "oracle": {"actions": [*actions, DONE]},
        "max_turns": 2 * len(actions) if len(actions) > FEW else None,
    }
    return Proposal(values, [asdict(check) for check in checks(start, end)], unknown_files(clean, start))
