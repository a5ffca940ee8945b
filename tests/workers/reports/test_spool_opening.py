"""A joined host's processes and threads open one spool at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workers.joined.spooled_reports import Spool

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
