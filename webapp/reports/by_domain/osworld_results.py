"""An evaluation in the folder layout of OSWorld's own runs, so that its tools read it.

    results-1/pyautogui/screenshot/MODEL/DOMAIN/ID/traj.jsonl, result.txt, step_1_TIME.png

One `results-N` for each sample of a task, as OSWorld keeps one run in one folder. An errored episode has no
result.txt, which OSWorld's tools take for not run. By OSWorld's rule it holds the score of the state, also
where a limit ended the episode; outcome.txt, and outcomes.json over all, tell those apart.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from training.actions.write.pyautogui_program import pyautogui_code
from training.contracts.outcome import SuccessRule
from training.contracts.types import Action, ActionKind
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import Evaluation
from webapp.lib.media.file_streams import stream, zip_pieces
from webapp.trajectories.action_words import actions_of
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.queries.evaluation_episodes import episodes_of

SPACES = "pyautogui/screenshot"
TIME = "%Y%m%d@%H%M%S%f"


def result_files(evaluation: Evaluation) -> Iterator[tuple[str, str | bytes]]:
    """(path, content) of all files, one episode after the other."""
    model = slugify(evaluation.experiment.name) or f"experiment-{evaluation.experiment_id}"
    outcomes: Counter[str] = Counter()
    for row in episodes_of(evaluation):
        domain, name = place_of(row.task.task_id, row.family)
        folder = f"results-{row.member + 1}/{SPACES}/{model}/{domain}/{name}"
        outcomes[row.outcome or "unscored"] += 1
        yield from _episode(row, folder)
    yield "outcomes.json", json.dumps({"rule_of_result_txt": SuccessRule.STATE, **outcomes}, indent=1) + "\n"


def place_of(task_id: str, family: str) -> tuple[str, str]:
    """Domain and id of a task: an imported one is named DOMAIN.ID, of others the family is the domain."""
    domain, _, name = task_id.partition(".")
    return (domain, name) if name and domain == family else (family or "other", task_id)


def _episode(row: Trajectory, folder: str) -> Iterator[tuple[str, str | bytes]]:
    turns = [turn for turn in row.turns.order_by("index") if turn.action or turn.completion]
    shown = [*(turn.frame for turn in turns[1:]), row.final_frame or row.last_frame]
    lines = []
    for turn, sha in zip(turns, shown, strict=True):
        at = turn.acted_at or turn.completed_at or turn.observed_at
        screenshot = f"step_{turn.index + 1}_{at.strftime(TIME)}.png"
        lines.append(json.dumps(_step(turn, at, screenshot, is_last=turn is turns[-1]), ensure_ascii=False))
        if sha:
            try:
                yield f"{folder}/{screenshot}", read_frame(sha)
            except FileNotFoundError:
                continue  # a rule of retention took it; the line still says what was done
    yield f"{folder}/traj.jsonl", "".join(f"{line}\n" for line in lines)
    if row.score is not None:
        yield f"{folder}/result.txt", f"{row.score}\n"
    if row.outcome is not None:
        yield f"{folder}/outcome.txt", f"{row.outcome}\n"


def _step(turn: TurnRecord, at: datetime, screenshot: str, *, is_last: bool) -> dict[str, object]:
    """A line of traj.jsonl; the screenshot is the one after the action, `reward` is 0 as OSWorld's own."""
    words = [_word(Action.model_validate(action)) for action in actions_of(turn)]
    word = words[-1] if words else ""
    return {
        "step_num": turn.index + 1,
        "action_timestamp": at.strftime(TIME),
        "action": "; ".join(words),
        "response": (turn.completion or {}).get("text", ""),
        "reward": 0,
        "done": is_last,
        "info": {"done": True} if word == "DONE" else {"fail": True} if word == "FAIL" else {},
        "screenshot_file": screenshot,
    }


def _word(action: Action) -> str:
    """The action as DesktopEnv takes it."""
    if action.kind is ActionKind.TERMINATE:
        return "FAIL" if action.status == "failure" else "DONE"
    return "WAIT" if action.kind is ActionKind.WAIT else pyautogui_code(action)


@require_safe
def osworld_results(request: MemberRequest, pk: int) -> StreamingHttpResponse:
    """The evaluation's episodes as a .zip in OSWorld's folder layout."""
    rows = Evaluation.objects.select_related("experiment")
    evaluation = get_object_or_404(rows, pk=pk, experiment__team=member(request).team)
    experiment = evaluation.experiment
    log_action(
        AuditAction.EXPORTED, person=request.user, team=experiment.team_id, kind="experiment",
        object_id=experiment.pk, form="osworld", evaluation=evaluation.pk,
    )  # fmt: skip
    pieces = zip_pieces(result_files(evaluation))
    response = StreamingHttpResponse(stream(pieces), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="osworld-evaluation-{evaluation.pk}.zip"'
    return response
