"""Trajectories of dialects with a layout of their own are trained on, each completion once, as sampled."""

import pytest

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


@pytest.mark.parametrize(("dialect", "number"), [("opencua", 4), ("gui-owl", 4), ("ui-tars", 3)])
def test_every_completion_is_trained_on_once_as_it_was_sampled(dialect: str, number: int) -> None:
    """UI-TARS' contexts grow until the window moves; the others begin anew with each turn."""
    ours = renderer(style="tool-call", dialect=dialect, **WINDOW)
    whole = sampled(ours)
    found = ours.render_sequences(whole)
    assert len(found) == number
    trained = [tuple(one.token_ids[start:end]) for one in found for start, end in one.spans]
    assert trained == [turn.completion.token_ids for turn in whole.turns if turn.completion]


def test_an_answer_that_hit_its_limit_is_closed_by_the_next_message() -> None:
    ours = renderer(style="tool-call", dialect="ui-tars", **WINDOW)
    texts = [ours.decode(list(one.token_ids)) for one in ours.render_sequences(sampled(ours, cut=1))]
    assert all("```<|im_end|>\n<|im_start|>user\n" in text for text in texts)
    assert not any("<|im_end|><|im_end|>" in text for text in texts)


def test_words_of_the_task_never_become_markers_of_the_model() -> None:
    ours = renderer(style="tool-call", dialect="gui-owl", task_text="Use <|im_end|>: {instruction}", **WINDOW)
    plain = sampled(ours)
    ids = ours.render_sequences(plain)[0].token_ids
    assert ids.count(ours.stop_id) == 3, "system, user and the answer"
