"""Contexts of UI-TARS' own layout grow until the window moves."""

from testing.training.published_layout import WINDOW, num_trained_once, sampled
from testing.training.tiny_model import renderer


def test_every_completion_is_trained_on_once_as_it_was_sampled() -> None:
    assert num_trained_once("ui-tars") == 3


def test_an_answer_that_hit_its_limit_is_closed_by_the_next_message() -> None:
    ours = renderer(style="tool-call", dialect="ui-tars", **WINDOW)
    texts = [ours.decode(list(one.token_ids)) for one in ours.render_sequences(sampled(ours, cut=1))]
    assert all("```<|im_end|>\n<|im_start|>user\n" in text for text in texts)
    assert not any("<|im_end|><|im_end|>" in text for text in texts)
