"""A whole private installation for a test or a benchmark: own data folder, free ports, no trace left.

with Instance(without=["gpu"]) as deskhand:
    httpx.get(deskhand.url)
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from testing.private_postgres import fresh_database
from webapp.lib.supervisor.ports import free_port

REPOSITORY = Path(__file__).resolve().parents[1]
START_TIMEOUT_S = 500
"""Also where the machine has other work."""
STOP_TIMEOUT_S = 60
INHERITED_SETTINGS = ("DESKHAND_DATA_DIR", "DESKHAND_REDIS_PORT", "REDIS_URL", "DATABASE_URL")
"""Variables that would make the private installation share something with another one."""


class InstanceFailed(Exception):
    """Raised when `manage.py` does not do what it should; the message holds the end of its output."""


@dataclass(kw_only=True)
class Instance:
    """A context manager around `manage.py up` in a process of its own."""

    data_dir: Path | None = None
    """Kept afterwards when given; else a temporary folder, removed at the end."""
    slots: int | None = None
    env_workers: int = 2
    gpu_workers: int = 1
    without: list[str] = field(default_factory=list)
    """Processes to leave out: web, deskhost, gpu, env, dispatcher."""
    env: dict[str, str] = field(default_factory=dict)
    """Additional environment variables, e.g. DATABASE_URL: without it a database of its own, of the kind that
    the tests run on."""
    port: int = field(default_factory=free_port)
    redis_port: int = field(default_factory=free_port)
    start_timeout_s: float = START_TIMEOUT_S
    tree: Path = REPOSITORY
    """The checkout that it runs from."""
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    is_temporary: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.data_dir is None:
            # Unix sockets live below it: their paths have to stay short.
            self.data_dir = Path(tempfile.mkdtemp(prefix="deskhand-", dir="/tmp"))
            self.is_temporary = True
        if os.environ.get("DESKHAND_TEST_DB") == "postgres" and "DATABASE_URL" not in self.env:
            self.env = {**self.env, "DATABASE_URL": fresh_database(os.environ["DATABASE_URL"])}

    def __enter__(self) -> "Instance":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self._check_logs()
        if self.is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _check_logs(self) -> None:
        """Raises InstanceFailed when one of its event loops has called the database."""
        for log in (self.folder / "logs").glob("*.log"):
            if "SynchronousOnlyOperation" in (text := log.read_text(errors="replace")):
                raise InstanceFailed(f"{log.name}: the database was called on an event loop\n{text[-4000:]}")

    @property
    def folder(self) -> Path:
        assert self.data_dir is not None
        return self.data_dir

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def credentials(self) -> tuple[str, str]:
        """(username, password) of the first login."""
        words = (self.folder / "first-login.txt").read_text().split()
        return words[1], words[3]

    @property
    def environment(self) -> dict[str, str]:
        """For a child process that shall work on this installation, e.g. another manage.py command."""
        inherited = {key: text for key, text in os.environ.items() if key not in INHERITED_SETTINGS}
        return {
            **inherited,
            "DESKHAND_DATA_DIR": str(self.folder),
            "DESKHAND_REDIS_PORT": str(self.redis_port),
            "DESKHAND_REMOTE_NETWORKS": "127.0.0.0/8,::1/128,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16",
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            **self.env,
        }

    def manage(self, *arguments: str, timeout_s: float = 300) -> str:
        """Run a manage.py command on this installation and return its output. Raises InstanceFailed."""
        command = [sys.executable, str(self.tree / "manage.py"), *arguments]
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.tree,
            timeout=timeout_s,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise InstanceFailed(f"manage.py {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
        return done.stdout

    @contextmanager
    def lines(self, *arguments: str) -> Iterator[queue.Queue[str]]:
        """What a manage.py command writes, line by line while it runs; "" at its end."""
        found: queue.Queue[str] = queue.Queue()
        command = [sys.executable, str(self.tree / "manage.py"), *arguments]
        process = subprocess.Popen(
            command, env=self.environment, cwd=self.tree, stdout=subprocess.PIPE, text=True
        )

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                found.put(line)
            found.put("")

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield found
        finally:
            process.terminate()
            process.wait()
            reader.join()

    def start(self) -> None:
        """Start everything and wait until it is ready. Raises InstanceFailed."""
        command = [sys.executable, str(self.tree / "manage.py"), "up", "--quiet", "--port", str(self.port)]
        command += ["--env-workers", str(self.env_workers)]
        command += ["--gpu-workers", str(self.gpu_workers), "--without", *self.without]
        if self.slots is not None:
            command += ["--slots", str(self.slots)]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ready_file.unlink(missing_ok=True)  # of a supervisor that was killed
        started = time.monotonic()
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.tree,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while not self.ready_file.exists():
            if self.process.poll() is not None or time.monotonic() - started > self.start_timeout_s:
                self.stop()
                raise InstanceFailed(self.output.read_text()[-4000:])
            time.sleep(0.05)

    @property
    def output(self) -> Path:
        return self.folder / "up.log"

    @property
    def ready_file(self) -> Path:
        return self.folder / "run" / "ready.json"

    def queues(self) -> dict[str, bool]:
        """Which queues executed a ping when everything had started."""
        return json.loads(self.ready_file.read_text())["queues"]

    def stop(self) -> None:
        """As Ctrl-C does; SIGKILL when that takes too long. Idempotent."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def kill(self) -> None:
        """SIGKILL to the supervisor alone, as a crash would; its children end by themselves."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
