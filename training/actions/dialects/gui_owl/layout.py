"""The conversation of GUI-Owl's agent: one message with the task, all conclusions and the last screenshots.

Source: desktop-env 1.0.2, mm_agents/owl_agent.py.
"""

from collections.abc import Callable, Sequence

from training.actions.dialects.contract import Message, Shown

NOTHING_YET = "No history. This is the first step."


def all_in_one(task: Callable[[str | None], str], turns: Sequence[Shown]) -> list[Message]:
    """Words before screenshots, each with its step."""
    concluded = "".join(f"Step {number}: {turn.words}\n" for number, turn in enumerate(turns[:-1], 1))
    parts: list[str | int | tuple[int, ...]] = [task(concluded or NOTHING_YET)]
    for number, turn in enumerate(turns[:-1], 1):
        if turn.seen:
            parts += [f"Screenshot of step {number}:\n", *turn.seen]
    return [Message("user", (*parts, "Current screenshot:\n", *turns[-1].seen))]
