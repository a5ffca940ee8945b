"""What a policy sees of the turns before: everything, a window of the screenshots, or a list of actions.

With `prompt.history: window` the context of turn k keeps the screenshots of the first
`keep_first_images` turns and of the last `keep_last_images` turns up to k; every other turn
keeps its words and its completion, and a short note stands where its screenshot was. The
window's start moves in strides of `window_slack` + 1 turns, so that most contexts still only
grow: what only grows shares its prefix in the engine's cache and in the trainer's sequence.

With `prompt.history: actions` the turns before the window are not there at all: the message of
the window's first turn holds the task and a list of what those turns did, in the policy's own
words. That is how published agents show their models a long trajectory.

The policy server and the trainer build contexts by the one function that uses this module,
`training.render.renderer.Renderer.context`.
"""

from dataclasses import dataclass, field

from training.contracts.config import PromptConfig

LEFT_OUT = "(earlier screenshot left out)\n"
"""Stands for a screenshot outside the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTurn:
    """One turn as the policy sees it."""

    text: str
    """The observation's words."""
    image_size: tuple[int, int] | None = None
    """(width, height) in pixels; None when the turn had no screenshot."""
    completion: tuple[int, ...] = ()
    """Its tokens; empty for the turn whose completion is yet to come."""


@dataclass(slots=True, kw_only=True)
class Context:
    """The tokens in front of one completion."""

    token_ids: list[int] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    """Turns whose screenshots are in it, in order."""
    grids: list[tuple[int, int, int]] = field(default_factory=list)
    """Their patch grids. [num_images]"""


def keeps_image(turn: int, current: int, prompt: PromptConfig) -> bool:
    """Whether the context of turn `current` has the screenshot of `turn` (0-based, turn <= current)."""
    if prompt.history == "full" or (prompt.history == "window" and turn < prompt.keep_first_images):
        return True
    return turn >= window_start(current, prompt)


def first_told_turn(current: int, prompt: PromptConfig) -> int:
    """First turn that the context of turn `current` has a message of; those before are a list of actions."""
    return window_start(current, prompt) if prompt.history == "actions" else 0


def window_start(current: int, prompt: PromptConfig) -> int:
    """First turn of the last screenshots in the context of turn `current`."""
    start = max(0, current + 1 - prompt.keep_last_images)
    return start - start % (prompt.window_slack + 1)
