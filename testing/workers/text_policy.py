"""A task for policies that read the accessibility tree, and such policies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from testing.workers.served_completions import served_completions
from training.content.task_sets.steps_and_evaluators import file_holds, setup_step
from training.contracts.types import Action, ActionKind, Completion, Task
from training.observations.widget_tree import widgets_of

ASK = (
    "zenity --question --title Choose --text 'Which one?' --ok-label Azure --cancel-label Crimson; "
    "echo $? > /home/user/answer.txt"
)
CHOOSE = Task(
    task_id="choose-crimson",
    instruction="Press the button Crimson.",
    config=(
        setup_step("launch", command=ASK, shell=True),
        setup_step("activate_window", window_name="Choose"),
    ),
    evaluator=file_holds("/home/user/answer.txt", "1", 3.0),
)


def press_crimson(tree: str) -> Action:
    """Click the button that the instruction names, or say that it is done where there is none."""
    named = (one for one in widgets_of(tree) if one.is_usable and one.name == "Crimson" and one.box)
    if (button := next(named, None)) is None or button.box is None:
        return Action(kind=ActionKind.TERMINATE, status="success")
    left, top, width, height = button.box
    return Action(kind=ActionKind.CLICK, x=left + width // 2, y=top + height // 2)


def click_crimson(text: str) -> str:
    """The completion that presses the button, where a turn's text has it."""
    place = re.search(r'^push-button "Crimson" (\d+),(\d+)', text, re.MULTILINE)
    if place is None:
        return '{"action": "terminate", "status": "success"}'
    return json.dumps({"action": "left_click", "coordinate": [int(place[1]), int(place[2])]})


@contextmanager
def served_policy(answer: Callable[[str], str]) -> Iterator[tuple[str, list[bytes]]]:
    """(URL, bodies of the requests for turns) of a policy that makes `answer` of each turn's text."""

    def complete(request: dict[str, Any]) -> Completion:
        return Completion(text=answer(request["text"]), token_ids=(1,), behaviour_logprobs=(-0.1,))

    with served_completions(complete) as served:
        yield served
