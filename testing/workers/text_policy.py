"""A task for policies that read the accessibility tree, and such a policy."""

from __future__ import annotations

from training.content.task_sets.steps_and_evaluators import file_holds, setup_step
from training.contracts.types import Action, ActionKind, Task
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
