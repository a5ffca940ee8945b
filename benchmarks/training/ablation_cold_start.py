"""The cold start of the ablation: a policy that fails whole groups, so that replay has something to do.

From random weights through the product: oracle demonstrations and a warm-up that is stopped early.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from testing.experiment_runs import follow, launch, settings
from testing.private_installation import Instance, InstanceFailed

SLOTS = 6


def make_cold(folder: Path, steps: int, limit_s: float) -> Path:
    """`folder` with the model after `steps` of warm-up, unless it is there. Raises InstanceFailed."""
    if (folder / "config.json").exists():
        return folder
    values = {
        "sft.max_steps": steps,
        "sft.evaluate_every": steps,
        "sft.stop_at_success": 1.0,
        "sft.demonstrations_per_family": min(400, steps),
        "algorithm.num_steps": 0,
        "evaluation.before": False,
        "evaluation.after": False,
        "desktops.num_desktops": SLOTS,
        "optimiser.seed": 0,
    }
    with Instance(without=["web"], slots=SLOTS, env_workers=1, env={"CUDA_VISIBLE_DEVICES": ""}) as deskhand:
        number = launch(deskhand, "--preset", "first-desk-from-scratch", *settings(values))
        described = follow(deskhand, number, limit_s, poll_s=8.0)
        if described["status"] != "finished" or not described["checkpoints"]:
            raise InstanceFailed(f"the cold start: {described['status']}: {described['message']}")
        # Renamed when it is whole: half a folder must not be taken for a start.
        half = folder.with_name(folder.name + ".tmp")
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(Path(described["checkpoints"][-1]["path"]) / "model", half)
        half.rename(folder)
    return folder
