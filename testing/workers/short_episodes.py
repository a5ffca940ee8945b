"""Short episodes on a real desktop: set up, act, score."""

from training.contracts.types import Action, ActionKind, Task
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks import prepare_and_score

DONE = Action(kind=ActionKind.TERMINATE, status="success")


def key(*names: str) -> Action:
    return Action(kind=ActionKind.KEY, keys=names)


def typed(text: str) -> Action:
    return Action(kind=ActionKind.TYPE, text=text)


def click(x: int, y: int) -> Action:
    return Action(kind=ActionKind.CLICK, x=x, y=y)


def play(task: Task, desktop: DesktopEnv, actions: list[Action], last: Action = DONE) -> float:
    """The score of doing `actions` and then saying `last`."""
    desktop.reset()
    prepare_and_score.setup(task, desktop)
    desktop.observe()
    for action in actions:
        desktop.act(action)
        desktop.observe()
    return prepare_and_score.evaluate(task, desktop, last)
