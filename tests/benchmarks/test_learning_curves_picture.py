"""The curves of learning benchmarks as a picture."""

from __future__ import annotations

from pathlib import Path

from benchmarks.training.learning_curves_picture import draw


def test_curves_of_arms_become_a_picture(tmp_path: Path):
    run = {
        "arm": "grpo",
        "status": "finished",
        "rollout_curve": [(1, 0.3), (2, 0.6)],
        "greedy_curve": [(0, 0.2)],
    }
    draw([run, run | {"arm": "random"}, run | {"arm": "broken", "status": "failed"}], "toy", tmp_path)
    picture = (tmp_path / "toy.svg").read_text()
    assert picture.startswith("<svg")
    assert "grpo (1 seed)" in picture
    assert "broken" not in picture
