"""The environment of a test session with Django, set before its settings are read; removed at the exit."""

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from testing.private_postgres import private_cluster
from webapp.lib.supervisor.ports import free_port

TEST_ROOT = Path(tempfile.mkdtemp(prefix="deskhand-test-"))
REDIS_PASSWORD = "only-for-this-test-session"
REDIS_PORT = free_port()
ON_POSTGRES = os.environ.get("DESKHAND_TEST_DB") == "postgres"

cleanup = ExitStack()
cleanup.callback(shutil.rmtree, TEST_ROOT, ignore_errors=True)
atexit.register(cleanup.close)

(TEST_ROOT / "static").mkdir()
os.environ["DESKHAND_DATA_DIR"] = str(TEST_ROOT)
os.environ["REDIS_URL"] = f"redis://:{REDIS_PASSWORD}@127.0.0.1:{REDIS_PORT}/0"
os.environ.pop("DATABASE_URL", None)
os.environ["DESKHAND_REMOTE_NETWORKS"] = "127.0.0.0/8,::1/128"  # stand-ins of servers elsewhere
os.environ["DESKHAND_HOSTS_URL"] = "https://deskhand.test:8743"  # what the page Add a host names
if ON_POSTGRES:
    os.environ["DATABASE_URL"] = cleanup.enter_context(private_cluster())
