"""A private PostgreSQL cluster in a folder, reached by a unix socket: for tests and benchmarks."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

BINARY_FOLDERS = "/usr/lib/postgresql/*/bin"
# Nothing here outlives the tests, so nothing has to reach the disk.
FAST_OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=100"


class PostgresMissing(Exception):
    """Raised when PostgreSQL's programs are not installed; the message says what to run."""


def find_binary(name: str) -> str:
    """Path of one of PostgreSQL's programs: newest of Debian's versions, else on PATH."""
    versions = sorted(
        Path("/").glob(BINARY_FOLDERS.lstrip("/")), key=lambda folder: float(folder.parent.name), reverse=True
    )
    for folder in versions:
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name)
    if not found:
        raise PostgresMissing(f"PostgreSQL's `{name}` is missing: run `apt-get install postgresql`.")
    return found


def fresh_database(url: str) -> str:
    """The URL of a new, empty database of the cluster that `url` is of."""
    name = f"deskhand_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]  # not from outside
    before, _, query = url.partition("?")
    return f"{before.rsplit('/', 1)[0]}/{name}?{query}"


def as_server_user(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root: root runs it as the user `postgres` that its package makes."""
    if os.geteuid() != 0:
        return command
    try:
        pwd.getpwnam("postgres")
    except KeyError as exc:
        raise PostgresMissing("The user `postgres` is missing: run `apt-get install postgresql`.") from exc
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--", *command]


def run(command: list[str], folder: Path) -> None:
    """Run one of PostgreSQL's programs; raises RuntimeError with its output when it fails."""
    done = subprocess.run(
        as_server_user(command),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}")


@dataclass(frozen=True)
class Cluster:
    """A running cluster that may be stopped and started again."""

    folder: Path
    options: str
    database: str

    @property
    def url(self) -> str:
        return f"postgresql://deskhand@/{self.database}?host={quote(str(self.folder), safe='')}"

    def start(self) -> None:
        # pg_ctl's own log file keeps the server off our pipe, which it would otherwise hold open.
        self._control("-l", str(self.folder / "log"), "-w", "-o", self.options, "start")

    def stop(self) -> None:
        """As a crash does: every connection breaks at once."""
        self._control("-m", "immediate", "-w", "stop")

    def _control(self, *words: str) -> None:
        run([find_binary("pg_ctl"), "-D", str(self.folder / "data"), *words], self.folder)


@contextmanager
def private_cluster(database: str = "deskhand", *, address: str = "", clients: str = "") -> Iterator[str]:
    """`running_cluster`, when only the URL of its database is wanted."""
    with running_cluster(database, address=address, clients=clients) as cluster:
        yield cluster.url


@contextmanager
def running_cluster(
    database: str = "deskhand", *, address: str = "", clients: str = "", is_durable: bool = False
) -> Iterator[Cluster]:
    """Start a new cluster with an empty database, and remove it afterwards.

    With `address` it listens there as well, on its usual port, and lets in `clients` (a CIDR block).
    `is_durable`: what was committed survives a crash, as with PostgreSQL's defaults.
    """
    # A unix socket's path must stay below 108 bytes: always the short /tmp.
    folder = Path(tempfile.mkdtemp(prefix="deskhand-pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data = folder / "data"
    try:
        initdb = [find_binary("initdb"), "-D", str(data), "-U", "deskhand", "-A", "trust", "-E", "UTF8"]
        run([*initdb, "--locale=C.UTF-8", "--no-sync"], folder)
        if clients:
            with (data / "pg_hba.conf").open("a") as file:
                file.write(f"host all all {clients} trust\n")
        options = f"-c listen_addresses='{address}' -c unix_socket_directories='{folder}' "
        options += "-c max_connections=100" if is_durable else FAST_OPTIONS
        cluster = Cluster(folder, options, database)
        cluster.start()
        try:
            run([find_binary("createdb"), "-h", str(folder), "-U", "deskhand", database], folder)
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
