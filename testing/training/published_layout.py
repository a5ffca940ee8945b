"""Trajectories of dialects with a layout of their own."""

from testing.training.tiny_model import SIZE, renderer
from training.contracts.types import Completion, Observation, Task, Trajectory, TrajectoryStatus, Turn
from training.render.renderer import Renderer

WINDOW = {"history": "window", "keep_first_images": 0, "keep_last_images": 2}
TEXT = "## Action:\nPress {number}.\n\n## Code:\n```python\npyautogui.press('{number}')\n```"


def sampled(ours: Renderer, *, cut: int | None = None) -> Trajectory:
    """Four turns; turn `cut` hit its limit of tokens."""
    turns = []
    for number in range(4):
        ids = ours.completion_ids(TEXT.format(number=number))
        ids = ids[:-1] if number == cut else ids
        completion = Completion(
            text="", token_ids=tuple(ids), behaviour_logprobs=(-0.5,) * len(ids), policy_version=1
        )
        words = "Press some." if not number else "a result"
        seen = Observation(sha256=f"{number:02d}", width=SIZE[0], height=SIZE[1], text=words)
        turns.append(Turn(index=number, observation=seen, completion=completion))
    return Trajectory(
        trajectory_id=1,
        group_id=1,
        task=Task(task_id="t", instruction="Press some."),
        status=TrajectoryStatus.TERMINATED,
        turns=tuple(turns),
    )


def num_trained_once(dialect: str) -> int:
    """Sequences of a trajectory in which each completion is trained on once, as it was sampled."""
    ours = renderer(style="tool-call", dialect=dialect, **WINDOW)
    whole = sampled(ours)
    found = ours.render_sequences(whole)
    trained = [tuple(one.token_ids[start:end]) for one in found for start, end in one.spans]
    assert trained == [turn.completion.token_ids for turn in whole.turns if turn.completion]
    return len(found)
