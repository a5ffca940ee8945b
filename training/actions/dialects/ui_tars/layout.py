"""The conversation of UI-TARS' agent: the task in a message of its own, then screenshots and answers in turn.

Source: desktop-env 1.0.2, mm_agents/uitars15_v1.py. Answers stay as they were sampled.
"""

from collections.abc import Callable, Sequence

from training.actions.dialects.contract import Message, Shown


def task_first(task: Callable[[str | None], str], turns: Sequence[Shown]) -> list[Message]:
    """An answer whose screenshot has left the window follows the answer before it."""
    messages = [Message("user", (task(None),))]
    for turn in turns[:-1]:
        if turn.seen:
            messages.append(Message("user", turn.seen))
        messages.append(Message("assistant", (turn.completion,)))
    return [*messages, Message("user", turns[-1].seen)]
