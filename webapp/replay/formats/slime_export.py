"""Replay entries as JSON lines in the format of Slime-OSWorld's replay buffer.

One object per line: `messages` (with `<image>` where a screenshot belongs), `images` (PNG as base64 data
URLs, or `sha256:` names), `reward`, `task_id`, `num_steps`, and `metadata`. Its loader ignores unknown keys;
under `metadata.deskhand` the exact turns travel along, so that our importer gets back what was recorded,
behaviour logprobs included.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Literal

from training.actions.pointer_words import PYAUTOGUI_POINTER
from training.actions.write.json_call import json_arguments
from training.actions.write.pyautogui_call import pyautogui_call
from training.actions.write.pyautogui_program import pyautogui_code
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.imitated_turns import context_turns
from training.contracts.types import Action, ActionKind, Turn
from webapp.replay.formats.conversation import ReadProblem
from webapp.replay.formats.messages import read_action
from webapp.replay.formats.observed_texts import raw_texts, sections
from webapp.replay.models import ImportedLine, ReplayEntry, Verdict
from webapp.replay.turn_edits import TurnEdit, as_trained
from webapp.replay.turn_ratings import bad_turns
from webapp.trajectories.action_words import action_caption, actions_caption
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory
from webapp.trajectories.row_to_types import trajectory_of, turn_limit

SYSTEM = (
    "You operate a desktop computer with the tool computer_use. Look at the screenshot, say in a few words "
    "what you do, then call the tool once."
)
QUALITY = {Verdict.GOLD: 5, Verdict.ACCEPTED: 4, Verdict.INBOX: 2, Verdict.REJECTED: 0}
PYAUTOGUI_KINDS = {
    *PYAUTOGUI_POINTER,
    ActionKind.TYPE,
    ActionKind.KEY,
    ActionKind.KEY_DOWN,
    ActionKind.KEY_UP,
}
"""What else its readers know, as a pyautogui call."""
LINE_END = "\n"
ImageForm = Literal["base64", "sha256"]


class CannotExport(ValueError):
    """Raised when an action has no form in the format; the message names entry and turn."""


def export_line(entry: ReplayEntry, images: ImageForm = "base64") -> str:
    """One line without its newline. Needs the entry's trajectory, task and turns loaded."""
    return json.dumps(export_record(entry, images), ensure_ascii=False, separators=(",", ":"))


def export_record(entry: ReplayEntry, images: ImageForm = "base64") -> dict[str, Any]:
    """The object of one line; one that was imported leaves as it came. Raises CannotExport."""
    record, shas = record_of(entry)
    return record | {"images": [image_text(sha, images) for sha in shas]}


def record_of(entry: ReplayEntry) -> tuple[dict[str, Any], list[str]]:
    """(the object of one line, the frames of its `images`). Raises CannotExport."""
    row = entry.trajectory
    bad = bad_turns(row.process_labels.all())
    recorded = as_trained(trajectory_of(row), TurnEdit(), bad)
    trained = as_trained(recorded, TurnEdit.read(entry.edit))
    turns = [turn for turn in trained.turns if turn.action is not None]
    imported: ImportedLine | None = getattr(entry, "imported_line", None)
    if imported is not None and not entry.edit and not bad:
        messages, shas = imported.messages, imported.images
    else:
        messages, shas = conversation(entry, row.task.instruction, turns)
    kept = {turn.index for turn in trained.turns}  # nothing depends on those that are cut off
    own = own_record(entry, [turn for turn in recorded.turns if turn.index in kept], messages, len(turns))
    return (as_imported(own, imported, entry) if imported else own), shas


def as_imported(own: dict[str, Any], imported: ImportedLine, entry: ReplayEntry) -> dict[str, Any]:
    """Our record with everything that the line held when it came; a person's verdict counts more."""
    record = {**own, **imported.fields}
    if entry.verdict != Verdict.INBOX:
        record["quality_rank"] = own["quality_rank"]
    is_verbatim = own["messages"] is imported.messages
    deskhand = own["metadata"]["deskhand"] | ({"is_imported": True} if is_verbatim else {})
    return record | {"metadata": {**own["metadata"], **imported.metadata, "deskhand": deskhand}}


def own_record(
    entry: ReplayEntry, recorded: list[Turn], messages: list[Any], num_steps: int
) -> dict[str, Any]:
    """What Deskhand knows of the entry."""
    row = entry.trajectory
    return {
        "messages": messages,
        "images": [],
        "reward": row.reward,
        "task_id": row.task.task_id,
        "num_steps": num_steps,
        "original_task_id": row.task.task_id,
        "source_dataset": "deskhand",
        "quality_rank": QUALITY[Verdict(entry.verdict)],
        "metadata": {
            "task_id": row.task.task_id,
            "instruction": row.task.instruction,
            "domain": entry.family,
            "is_success": True,
            "source": "human_label",
            "labeller": entry.labelled_by.get_username() if entry.labelled_by else None,
            "run_id": row.experiment_id,
            "policy_version": row.policy_version,
            "raw_reward": row.score,
            "shaped_reward": row.reward,
            "behaviour_logprobs_ref": f"trajectory:{row.pk}",
            "num_dropped_turns": len(recorded) - num_steps,
            "deskhand": {
                "entry": entry.pk,
                "verdict": entry.verdict,
                "tags": entry.tags,
                "note": entry.note,
                "source": row.source,
                "max_turns": turn_limit(row),
                "branch": lineage_of(row),
                "turns": [turn.model_dump(mode="json", exclude_defaults=True) for turn in recorded],
                "thoughts": {str(turn.index): turn.thought for turn in row.turns.all() if turn.thought},
                **({"texts": texts} if (texts := raw_texts(recorded)) else {}),
                **({"edit": entry.edit} if entry.edit else {}),
                **({"part": entry.part} if entry.part else {}),
                "terms": row.terms,
            },
        },
    }


def lineage_of(row: Trajectory) -> dict[str, int | None] | None:
    """Of a branch: whose turns its first ones are, and how many; the parent may have been deleted."""
    if row.group.branch_turn is None:
        return None
    return {"parent_trajectory": row.group.parent_id, "turn": row.group.branch_turn}


def conversation(
    entry: ReplayEntry, instruction: str, turns: list[Turn]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Messages, and the frames in the order of their `<image>` marks; an unchanged screen has no mark.

    What is only the context of a person's turns has `step_loss_mask` 0.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    shas: list[str] = []
    domain = entry.family or "desktop"
    thoughts = {row.index: row.thought for row in entry.trajectory.turns.all()}
    last_kind, raw = "", raw_texts(turns)
    for turn, is_context in zip(turns, context_turns(turns), strict=True):
        sha = turn.observation.sha256
        mark = ""
        if sha and sha != (shas[-1] if shas else ""):
            shas.append(sha)
            mark = "<image>\n"
        reply = f"[Last Action Result]\nAction '{last_kind}' executed successfully."
        if not last_kind:
            reply = f"[Task]\n{instruction}"
        read = sections(turn.observation, raw)
        messages.append({"role": "user", "content": f"{mark}[Domain]\n{domain}\n\n{reply}{read}"})
        assert turn.action is not None
        where = f"entry {entry.pk}, turn {turn.index + 1}"
        thought = thoughts.get(turn.index, "") if turn.completion else ""
        said = spoken_text(turn.actions, thought, where)
        message: dict[str, Any] = {"role": "assistant", "content": said}
        messages.append(message | ({"step_loss_mask": 0} if is_context else {}))
        last_kind = turn.action.kind.value
    return messages, shas


def spoken_text(actions: Sequence[Action], thought: str, where: str) -> str:
    """The agent's own words before the call; a caption where it said none, or none that can be read back."""
    plain = action_text(actions[0], where) if len(actions) == 1 else program_text(actions, where)
    words = thought.strip()
    if not words:
        return plain
    said = f"{words}\n{plain.partition(LINE_END)[2]}"
    try:
        is_same = read_action(said, where).actions == read_action(plain, where).actions
    except ReadProblem:
        return plain
    return said if is_same else plain


def action_text(action: Action, where: str) -> str:
    """ "Action: ..." and the tool call, or the pyautogui call for what the tool has no word for.

    Raises CannotExport, whose message starts with `where`.
    """
    words = action_caption(action.model_dump(mode="json")).replace("\n", " ")
    arguments = tool_arguments(action)
    if arguments is not None:
        call = json.dumps({"name": "computer_use", "arguments": arguments}, ensure_ascii=False)
        return f"Action: {words}\n<tool_call>\n{call}\n</tool_call>"
    if action.kind not in PYAUTOGUI_KINDS and not newer_parts(action):
        raise CannotExport(f"{where}: “{words}” has no form in this format")
    try:
        call = pyautogui_call(action, _pixels)
    except ValueError:  # several calls
        return program_text([action], where)
    return f"Action: {action.kind.value.replace('_', ' ')}\n{call}"


def program_text(actions: Sequence[Action], where: str) -> str:
    """ "Action: ..." and pyautogui calls, one after another. Raises CannotExport."""
    words = actions_caption([action.model_dump(mode="json") for action in actions]).replace("\n", " ")
    if any(action.kind in (ActionKind.TERMINATE, ActionKind.PASTE) for action in actions):
        raise CannotExport(f"{where}: “{words}” has no form in this format")
    kinds = ", ".join(action.kind.value.replace("_", " ") for action in actions)
    return f"Action: {kinds}\n" + "\n".join(pyautogui_code(action) for action in actions)


def tool_arguments(action: Action) -> dict[str, Any] | None:
    """Arguments of `computer_use`, None when Slime-OSWorld's version of the tool cannot say it."""
    if newer_parts(action):
        return None
    has_point = action.x is not None and action.y is not None
    match action.kind:
        case ActionKind.CLICK | ActionKind.RIGHT_CLICK | ActionKind.DOUBLE_CLICK if has_point:
            return json_arguments(action, _pixels)
        case ActionKind.TYPE if "\n" not in (action.text or ""):
            return json_arguments(action, _pixels)
        case ActionKind.SCROLL if action.scroll_y and not action.scroll_x:
            return json_arguments(action, _pixels)
        case ActionKind.DRAG if has_point and action.to_x is not None:
            arguments = json_arguments(action, _pixels)
            end = arguments.pop("coordinate")
            return {**arguments, "end_coordinate": end}
        case ActionKind.KEY | ActionKind.WAIT:
            return json_arguments(action, _pixels)
        case ActionKind.TERMINATE:
            return json_arguments(action.model_copy(update={"text": None}), _pixels)
    return None


def _pixels(x: int, y: int) -> list[int]:
    return [x, y]


def image_text(sha256: str, form: ImageForm) -> str:
    """A frame as the `images` list holds it."""
    if form == "sha256":
        return f"sha256:{sha256}"
    return "data:image/png;base64," + b64encode(read_frame(sha256, "png")).decode()
