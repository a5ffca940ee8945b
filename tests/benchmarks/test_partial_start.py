"""Which of a few SFT steps the start of form8's arms is taken from."""

from benchmarks.gpu.partial_start import chosen_step


def test_the_first_checkpoint_that_fills_a_field_now_and_then_is_taken() -> None:
    assert chosen_step({8: 0.31, 4: 0.05, 12: 0.6}) == 8


def test_without_one_the_best_is_taken() -> None:
    assert chosen_step({4: 0.05, 8: 0.12, 12: 0.1}) == 8
