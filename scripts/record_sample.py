#!/usr/bin/env python
"""Record the run that `manage.py seed_demo` shows: a short First desk on real desktops of this machine.

    .venv/bin/python -m scripts.record_sample [--port 8790]      (minutes)

Writes webapp/samples/recording.zip: `run.json` (config, stages, metrics, evaluations, groups with every turn)
and the screenshots as PNG by sha256.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testing.experiment_runs import follow, launch, settings
from testing.private_installation import REPOSITORY, Instance

TARGET = REPOSITORY / "webapp" / "samples" / "recording.zip"
CONFIG: dict[str, object] = {
    "algorithm.num_steps": 4,
    "algorithm.group_size": 4,
    "algorithm.groups_per_step": 3,
    "evaluation.num_tasks": 6,
    "evaluation.every": 4,
    "checkpoints.every": 4,
}
LIMIT_S = 1500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8790)
    options = parser.parse_args()
    with Instance(port=options.port, slots=3, env_workers=1) as deskhand:
        number = launch(deskhand, "--preset", "first-desk", "--name", "First desk", *settings(CONFIG))
        ended = follow(deskhand, number, LIMIT_S)
        print(f"{ended['status']}: {ended['message']}")
        if ended["status"] != "finished":
            return 1
        code = f"from scripts.sample_recording import record; record({number}, {str(TARGET)!r})"
        deskhand.manage("shell", "-c", code)
    print(f"{TARGET.relative_to(Path.cwd())}: {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
