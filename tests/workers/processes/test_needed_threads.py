"""A process that loses a thread that it needs ends; another thread's error ends only that thread."""

import subprocess
import sys

LOSES_THREADS = """
import threading, time
from workers.processes.needed_threads import start_needed
lost = threading.Thread(target=lambda: 1 / 0)
lost.start()
lost.join()
start_needed("short", lambda: None).join()
print("still there", flush=True)
start_needed("heartbeat", lambda: 1 / 0)
time.sleep(30)
"""


def test_a_worker_that_lost_its_heartbeat_ends_so_that_it_is_started_anew() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOSES_THREADS], capture_output=True, text=True, check=False, timeout=25
    )
    assert (done.returncode, done.stdout) == (1, "still there\n")
    assert "this process ends, since its thread heartbeat did" in done.stderr
