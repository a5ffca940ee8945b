"""Contexts of OpenCUA's own layout begin anew with each turn."""

from testing.training.published_layout import num_trained_once


def test_every_completion_is_trained_on_once_as_it_was_sampled() -> None:
    assert num_trained_once("opencua") == 4
