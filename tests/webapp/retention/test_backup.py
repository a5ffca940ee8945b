"""A backup while a writer writes, restored into an empty folder: rows and files are those of one moment."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from testing.paths import REPOSITORY
from testing.private_postgres import PostgresMissing, private_cluster
from webapp.retention.backup.sealed_secrets import WrongPassphrase, seal, unseal
from webapp.retention.deletion_lock import deletion_allowed, deletion_held

WRITER = """
import sys
from testing.factories import make_experiment, make_team, make_trajectory
from webapp.trajectories.services.frames import store_frame
from PIL import Image
from io import BytesIO
experiment = make_experiment(team=make_team(), status="running")
experiment.checkpoints.create(step=1, policy_version=1, path="/nowhere/1")
number = 0
while True:
    trajectory = make_trajectory(experiment=experiment, turns=1)
    body = BytesIO()
    Image.new("RGB", (16, 16), (number % 256, number // 256, 0)).save(body, "PNG")
    trajectory.turns.update(frame=store_frame(experiment.team, body.getvalue()))
    number += 1
    print(number, flush=True)
"""
COUNT = """
import json
from pathlib import Path
from django.conf import settings
from webapp.experiments.models import Experiment
from webapp.trajectories.models import Trajectory, TurnRecord
shas = set(TurnRecord.objects.values_list("frame", flat=True))
gone = [sha for sha in shas if not Path(settings.MEDIA_ROOT, "frames", sha[:2], sha + ".png").exists()]
print(json.dumps({
    "trajectories": Trajectory.objects.count(), "turns": TurnRecord.objects.count(), "missing": gone,
    "frames": len(shas), "status": list(Experiment.objects.values_list("status", flat=True)),
}))
"""


def environment(folder: Path, url: str = "") -> dict[str, str]:
    return {**os.environ, "DESKHAND_DATA_DIR": str(folder), "DATABASE_URL": url, "REDIS_URL": ""}


def manage(where: dict[str, str], *arguments: str, fails: bool = False) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=where, capture_output=True, text=True, check=False)
    assert bool(done.returncode) is fails, done.stderr[-2000:]
    return done.stderr if fails else done.stdout


def last_json(text: str) -> dict:
    return json.loads(text.strip().splitlines()[-1])


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict, dict]]:
    """Environments of an installation and of an empty one."""
    with ExitStack() as stack:
        urls = ["", ""]
        if request.param == "postgresql":
            try:
                urls = [stack.enter_context(private_cluster()) for _ in urls]
            except PostgresMissing as reason:
                pytest.skip(str(reason))
        yield environment(tmp_path / "a", urls[0]), environment(tmp_path / "b", urls[1])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_backup_of_a_working_installation_is_one_moment(places: tuple[dict, dict], tmp_path: Path) -> None:
    here, there = places
    manage(here, "migrate", "-v0")
    secrets = Path(here["DESKHAND_DATA_DIR"]) / "secrets" / "vendor-token"
    secrets.write_text("s3cret")
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("correct horse battery\n")
    file = tmp_path / "backup.tar"
    writer = subprocess.Popen(
        [sys.executable, "manage.py", "shell", "-v0", "-c", WRITER],
        cwd=REPOSITORY,
        env=here,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    try:
        before = [int(writer.stdout.readline()) for _ in range(30)][-1]
        made = last_json(manage(here, "backup", str(file), "--secrets", str(passphrase)))
        after = int(writer.stdout.readline())
        assert writer.poll() is None, "nothing stopped it"
    finally:
        writer.kill()
        writer.wait()
    assert b"s3cret" not in file.read_bytes()
    answer = last_json(manage(there, "restore", str(file), "--secrets", str(passphrase)))
    found = last_json(manage(there, "shell", "-v0", "-c", COUNT))
    assert found["missing"] == [], "every row's screenshot is there"
    assert found["turns"] >= before
    assert found["trajectories"] - found["turns"] in (0, 1), "the writer makes one after the other"
    assert after > 0
    assert found["frames"] <= made["media_files"] // 3 + 1
    assert found["status"] == ["paused"], "nothing starts by itself in a copy"
    assert answer["missing_checkpoints"] == ["/nowhere/1"]
    assert (Path(there["DESKHAND_DATA_DIR"]) / "secrets" / "vendor-token").read_text() == "s3cret"
    assert "has data already" in manage(there, "restore", str(file), fails=True)
    if not here["DATABASE_URL"]:
        with closing(sqlite3.connect(Path(there["DESKHAND_DATA_DIR"]) / "deskhand.sqlite3")) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "deskhand.sqlite3 has no tables, so there is nothing to back up"),
        ("postgresql://deskhand@127.0.0.1:1/deskhand", "the database cannot be read: "),
    ],
)
def test_a_database_without_tables_or_out_of_reach_is_said_so(tmp_path: Path, url: str, said: str) -> None:
    where = environment(tmp_path / "new", url) | {"DESKHAND_DB_POOL": "0"}  # a pool says the same after 10 s
    answer = manage(where, "backup", str(tmp_path / "backup.tar"), fails=True)
    assert said in answer
    assert "Traceback" not in answer
    assert list(tmp_path.glob("*backup.tar*")) == []


def test_a_backup_of_a_newer_version_is_refused_and_nothing_restored(tmp_path: Path) -> None:
    file, there = tmp_path / "backup.tar", environment(tmp_path / "there")
    manifest = {"database": "sqlite", "migrations": ["live.9999_of_tomorrow"], "has_secrets": False}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with tarfile.open(file, "w") as archive:
        archive.add(tmp_path / "manifest.json", "manifest.json")
    assert "the backup is of a newer version (live.9999_of_tomorrow" in manage(
        there, "restore", str(file), fails=True
    )
    assert not (tmp_path / "there" / "media").exists()


def test_secrets_open_with_their_passphrase_alone(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "token").write_text("value")
    sealed = seal(folder, "correct horse battery")
    assert b"value" not in sealed
    with pytest.raises(WrongPassphrase):
        unseal(sealed, "another one entirely", tmp_path / "no")
    assert unseal(sealed, "correct horse battery", tmp_path / "yes") == ["token"]
    assert (tmp_path / "yes" / "token").read_text() == "value"
    assert (tmp_path / "yes" / "token").stat().st_mode & 0o777 == 0o600


def test_nothing_is_deleted_while_a_backup_is_made() -> None:
    with deletion_held(), deletion_allowed() as is_allowed:
        assert not is_allowed
    with deletion_allowed() as is_allowed:
        assert is_allowed
