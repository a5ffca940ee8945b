"""A joined host's processes and threads open one spool at once; a worker that lost a thread ends."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from webapp.lib.host_links.joined_identity import JoinedIdentity
from workers.door import through
from workers.door.spool import Spool

TRIES, AT_ONCE = 20, 8
LOSES_A_THREAD = """
import threading, time
import django
django.setup()
from workers.joined import joined_worker
threading.excepthook = joined_worker.end_process
threading.Thread(target=lambda: 1 / 0, name="heartbeat").start()
time.sleep(30)
"""


def test_all_that_open_a_new_spool_at_once_get_the_same_stream(tmp_path: Path) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for number in range(TRIES):
            together = threading.Barrier(AT_ONCE)

            def opened(path: Path = tmp_path / str(number) / "spool.sqlite3", when=together) -> Spool:
                when.wait()
                return Spool(path)

            spools = [one.result() for one in [threads.submit(opened) for _ in range(AT_ONCE)]]
            assert len({spool.stream for spool in spools}) == 1
            for spool in spools:
                spool.close()


def test_the_threads_of_a_process_share_one_door(
    settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR, settings.JOINED = tmp_path, JoinedIdentity
    monkeypatch.setattr(through, "HttpsDoor", lambda identity, spool: spool)
    through.open_door.cache_clear()
    try:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            doors = [one.result() for one in [threads.submit(through.https_door) for _ in range(AT_ONCE)]]
        assert len(set(doors)) == 1
    finally:
        through.open_door.cache_clear()


def test_a_worker_that_lost_its_heartbeat_ends_so_that_it_is_started_anew() -> None:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "webapp.settings"}
    done = subprocess.run(
        [sys.executable, "-c", LOSES_A_THREAD], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "thread heartbeat ended, so this worker ends: division by zero" in done.stderr
