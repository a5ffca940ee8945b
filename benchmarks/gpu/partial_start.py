"""A start that fills a field of form8 right now and then, so that GRPO has something to compare.

The demonstrated start never saw eight fields: GRPO from it learns one field, ends there, and compares
nothing any more. A few SFT steps on form8's own demonstrations show the way by Tab. Of their checkpoints the
first is taken whose sampled share of right fields on held-out tasks reaches `SHARE`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testing.private_installation import Instance
from testing.watch_installation import rows

SHARE = 0.25
"""Eight fields are right at once in 1 of 65 000 trajectories, if each is right in a quarter of them."""
SOON = {
    "sft.max_steps": 80,
    "sft.evaluate_every": 10,
    "sft.demonstrations_per_family": 120,
    "sft.batch_size": 8,
}
"""After 32 steps, each on 4 of 24 demonstrations, 5 % of the held-out fields were right."""
TINY = {"sft.max_steps": 2, "sft.evaluate_every": 1, "sft.demonstrations_per_family": 1, "sft.batch_size": 1}
SCORES = """
SELECT step, avg(score) FROM trajectories_trajectory
WHERE experiment_id = {} AND purpose = 'evaluation' AND family = 'form8' AND score IS NOT NULL
GROUP BY step ORDER BY step
"""


def make_partial_start(
    deskhand: Instance,
    run: Callable[[Mapping[str, object]], dict[str, Any]],
    folder: Path,
    *,
    is_tiny: bool = False,
) -> None:
    """SFT by `run`, and the chosen checkpoint's model in `folder`; others may wait for it."""
    described = run(
        {
            "tasks.families": ["form8"],
            "sft.enabled": True,
            "sft.families": [],
            "sft.stop_at_success": 0.05,
            "evaluation.num_tasks": 2 if is_tiny else 8,
            "evaluation.before": False,
            "evaluation.after": False,
            "checkpoints.keep_last": 20,
            "algorithm.num_steps": 0,
            **(TINY if is_tiny else SOON),
        }
    )
    scores = dict(rows(deskhand, SCORES.format(described["id"])))
    step = chosen_step(scores)
    print(f"form8, share of right fields by SFT step: {scores}; taken: {step}", flush=True)
    (path,) = (one["path"] for one in described["checkpoints"] if one["step"] == step)
    put_model(path, folder)


def put_model(checkpoint: str, folder: Path) -> None:
    """A checkpoint's model in `folder`, which is there only once it is whole: others may wait for it."""
    made = folder.with_name(f"{folder.name}.part")
    shutil.copytree(f"{checkpoint}/model", made)
    made.rename(folder)


def chosen_step(scores: Mapping[int, float]) -> int:
    """The first SFT step whose share reaches `SHARE`; without one, that of the largest."""
    reached = [step for step, share in sorted(scores.items()) if share >= SHARE]
    return reached[0] if reached else max(scores, key=lambda step: scores[step])
