"""Contexts of GUI-Owl's own layout begin anew with each turn."""

from testing.training.published_layout import WINDOW, num_trained_once, sampled
from testing.training.tiny_model import renderer


def test_every_completion_is_trained_on_once_as_it_was_sampled() -> None:
    assert num_trained_once("gui-owl") == 4


def test_words_of_the_task_never_become_markers_of_the_model() -> None:
    ours = renderer(style="tool-call", dialect="gui-owl", task_text="Use <|im_end|>: {instruction}", **WINDOW)
    plain = sampled(ours)
    ids = ours.render_sequences(plain)[0].token_ids
    assert ids.count(ours.stop_id) == 3, "system, user and the answer"
