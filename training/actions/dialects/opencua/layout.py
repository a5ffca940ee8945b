"""The conversation of OpenCUA's agent: earlier answers by their action, the task beside the last screenshot.

Source: desktop-env 1.0.2, mm_agents/opencua/opencua_agent.py, history_type action_history.
"""

from collections.abc import Callable, Sequence

from training.actions.dialects.contract import Message, Shown

STEP = "# Step {number}:\n## Action:\n{action}\n"


def task_last(task: Callable[[str | None], str], turns: Sequence[Shown]) -> list[Message]:
    """Steps whose screenshots have left the window are one answer together."""
    messages: list[Message] = []
    unseen: list[str] = []
    for number, turn in enumerate(turns[:-1], 1):
        step = STEP.format(number=number, action=turn.words)
        if turn.seen:
            messages += [Message("user", turn.seen), Message("assistant", (step,))]
        else:
            unseen.append(step)
    if unseen:
        messages.insert(0, Message("assistant", ("\n".join(unseen),)))
    return [*messages, Message("user", (*turns[-1].seen, task(None)))]
