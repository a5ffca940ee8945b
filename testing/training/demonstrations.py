"""Oracle demonstrations over made-up screens: clicking a button, choosing a row, typing a text."""

from __future__ import annotations

from testing.training.tiny_model import Frames, demonstration
from training.contracts.types import Action, Trajectory

CLICK = Action(kind="click", x=100, y=200)
DOWN = Action(kind="key", keys=("Down",))
DONE = Action(kind="terminate", status="success")
BUTTONS = [
    {"name": "red button", "x": 100, "y": 200},
    {"name": "blue button", "x": 400, "y": 96},
    {"name": "green button", "x": 256, "y": 300},
]
ROWS = [{"name": f"row {n}", "x": 200, "y": 60 + 48 * n} for n in range(1, 5)]


def clicking(frames: Frames) -> Trajectory:
    return demonstration(frames, [CLICK, DONE], family="colour", oracle={"widgets": BUTTONS})


def choosing(frames: Frames) -> Trajectory:
    return demonstration(
        frames,
        [DOWN, DONE],
        instruction="Choose row 2.",
        family="menu",
        oracle={"widgets": ROWS},
        first_seed=5,
    )


def typing(frames: Frames, text: str, seed: int) -> Trajectory:
    action = Action(kind="type", text=text)
    instruction = f'Type "{text}" and save.'
    return demonstration(frames, [action, DONE], instruction=instruction, family="note", first_seed=seed)
