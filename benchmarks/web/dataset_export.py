"""How fast an experiment's trajectories leave as Parquet shards, screenshots inside.

The recorded First desk run of `seed_demo` (real screens of 512 x 384, real turns), its groups copied until
there are enough; then two shards are downloaded side by side from a real web process, read again, and
counted: each trajectory once, every screen that a turn names is there and begins as a PNG.

Bar: 1 000 trajectories a second on two cores.

    python -m benchmarks.web.dataset_export [--trajectories 4000]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.parquet as pq

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import finish, print_table
from benchmarks.vnc.rounds import family_cpu_s
from testing.private_installation import Instance

NUM_SHARDS = 2
LEAST_PER_S = 1000.0
WEB_ONLY = ["gpu", "env", "deskhost", "dispatcher"]
PNG = b"\x89PNG\r\n"
TIMEOUT_S = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=4000)
    options = parser.parse_args()
    before = load_and_speed()
    with Instance(without=WEB_ONLY) as deskhand, tempfile.TemporaryDirectory(prefix="shards-") as folder:
        os.environ.update(deskhand.environment)
        deskhand.manage("seed_demo")
        experiment, token, count = fill(options.trajectories)
        figures = measure(deskhand, f"/api/v1/experiments/{experiment}/trajectories", token, Path(folder))
        figures["found_each_once"] = figures.pop("ids") == count
    rate = figures["trajectories_per_s"] = round(count / figures["wall_s"], 1)
    figures |= {"trajectories": count, "before": before, "after": load_and_speed()}
    shown = ("trajectories", "trajectories_per_s", "wall_s", "server_cpu_s", "mb", "screens")
    print_table(shown, [[figures[name] for name in shown]])
    return finish("dataset_export", figures, passed=rate >= LEAST_PER_S and figures["found_each_once"])


def fill(least: int) -> tuple[int, str, int]:
    """(the sample's experiment, a token that may read it, its ended trajectories)."""
    import django

    django.setup()
    from django.contrib.auth.models import User

    from webapp.accounts.services.tokens import create_token
    from webapp.experiments.models import Experiment
    from webapp.trajectories.models import Trajectory

    experiment = Experiment.objects.get(is_sample=True, status="finished")
    ended = Trajectory.objects.filter(experiment=experiment, ended_at__isnull=False)
    groups = list(experiment.groups.exclude(trajectories=None))
    while ended.count() < least:
        for group in groups:
            copy_group(group)
    person = User.objects.get(is_superuser=True)
    return experiment.pk, create_token(user=person, name="benchmark"), ended.count()


def copy_group(group: Any) -> None:
    """With its trajectories and their turns; screenshots are shared, as equal screens always are."""
    from django.db import transaction

    from webapp.trajectories.models import TurnRecord

    with transaction.atomic():
        members = list(group.trajectories.prefetch_related("turns"))
        group.pk = None
        group.save(force_insert=True)
        turns = []
        for row in members:
            own = list(row.turns.all())
            row.pk, row.group = None, group
            row.save(force_insert=True)
            for turn in own:
                turn.pk, turn.trajectory = None, row
            turns += own
        TurnRecord.objects.bulk_create(turns)


def measure(deskhand: Instance, path: str, token: str, folder: Path) -> dict[str, Any]:
    """Both shards from the first byte asked for to the last one on the disk, and what they hold."""
    assert deskhand.process is not None
    server = [psutil.Process(deskhand.process.pid)]

    def download(shard: int) -> Path:
        file = folder / f"all-{shard:05d}-of-{NUM_SHARDS:05d}.parquet"
        asked = {"shard": shard, "num_shards": NUM_SHARDS}
        headers = {"Authorization": f"Bearer {token}"}
        with (
            httpx.stream("GET", deskhand.url + path, params=asked, headers=headers, timeout=TIMEOUT_S) as got,
            file.open("wb") as sink,
        ):
            got.raise_for_status()
            for piece in got.iter_bytes():
                sink.write(piece)
        return file

    used, started = family_cpu_s(server), time.monotonic()
    with ThreadPoolExecutor(NUM_SHARDS) as pool:
        files = list(pool.map(download, range(NUM_SHARDS)))
    wall_s, used = time.monotonic() - started, family_cpu_s(server) - used
    ids, screens = counted(files)
    size = sum(file.stat().st_size for file in files)
    return {
        "wall_s": round(wall_s, 2),
        "server_cpu_s": round(used, 2),
        "mb": round(size / 1e6, 1),
        "screens": screens,
        "ids": ids,
    }


def counted(files: list[Path]) -> tuple[int, int]:
    """(different trajectories, screens). Raises ValueError for a screen that is no PNG or is not there."""
    ids: set[int] = set()
    screens = 0
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=64):
            for row in batch.to_pylist():
                pictures = row["images"]
                named = {turn["image"] for turn in row["turns"]} - {None}
                if any(not one["bytes"].startswith(PNG) for one in pictures) or max(named) >= len(pictures):
                    raise ValueError(f"trajectory {row['trajectory_id']}: its screens are not whole")
                ids.add(row["trajectory_id"])
                screens += len(pictures)
    return len(ids), screens


if __name__ == "__main__":
    sys.exit(main())
