"""What tests and benchmarks see of a running installation from outside: its rows, its processes."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil
import psycopg
from psycopg.types.string import TextLoader

T = TypeVar("T")


class Recorded(Protocol):
    """By what the database of an installation is found."""

    @property
    def env(self) -> dict[str, str]: ...
    @property
    def folder(self) -> Path: ...


def rows(deskhand: Recorded, query: str) -> list[tuple[Any, ...]]:
    """Read the database beside the running product; JSON as text. Raises its own error when it is away."""
    if url := deskhand.env.get("DATABASE_URL"):
        with psycopg.connect(url, connect_timeout=5) as connection:
            connection.adapters.register_loader("jsonb", TextLoader)
            return connection.execute(query).fetchall()  # type: ignore[arg-type]
    database = sqlite3.connect(f"file:{deskhand.folder}/deskhand.sqlite3?mode=ro", uri=True, timeout=30)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def wait_for(
    what: str | Callable[[], object],
    condition: Callable[[], T],
    *,
    patience_s: float = 60.0,
    poll_s: float = 0.3,
) -> T:
    """The condition's first true answer. Raises TimeoutError; `what` may be looked up only then."""
    deadline = time.monotonic() + patience_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            said = what() if callable(what) else what
            raise TimeoutError(f"waited {patience_s:g} s in vain for: {said}")
        time.sleep(poll_s)
    return answer


class Marks(Protocol):
    """By what the processes of an installation are known."""

    folder: Any
    redis_port: int


def processes(deskhand: Marks, *words: str) -> list[psutil.Process]:
    """This installation's processes whose command line holds all `words`, the newest last."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if all(word in line for word in words) and _is_of(process, line, deskhand):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def _is_of(process: psutil.Process, line: str, deskhand: Marks) -> bool:
    """Redis rewrites its command line, and its environment with it; its port stays."""
    names_it = str(deskhand.folder) in line or f":{deskhand.redis_port}" in line
    return names_it or process.environ().get("DESKHAND_DATA_DIR") == str(deskhand.folder)
