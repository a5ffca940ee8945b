"""A joined host's processes and threads open one spool at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from webapp.lib.host_links.joined_identity import JoinedIdentity
from workers.door import through
from workers.door.spool import Spool

TRIES, AT_ONCE = 20, 8


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
