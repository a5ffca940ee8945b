"""One experiment on one installation while faults are thrown at it: what runs, what is said, what goes on."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from testing.joined_machine import JoinedMachine
from testing.linked_network import Network
from testing.private_installation import Instance
from testing.private_postgres import Cluster
from testing.watch_installation import Recorded, rows

AWAY = (sqlite3.OperationalError, psycopg.OperationalError)
"""What reading says while the database is the thing that was struck."""
POLL_S = 0.25
SCORED = "('terminated', 'truncated')"
FINAL = {"finished", "failed", "cancelled"}


class Missed(Exception):
    """Raised when a fault found nothing to hit, or cannot be shown to have hit."""


@dataclass(frozen=True)
class Progress:
    """How far the experiment is."""

    status: str
    message: str
    step: int
    num_scored: int
    newest: int
    """Highest id of a trajectory."""


@dataclass
class Records:
    """What the database of an installation says of one experiment."""

    deskhand: Recorded
    experiment: int = field(default=0, kw_only=True)

    @property
    def folder(self) -> Path:
        return self.deskhand.folder

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Of this run's database, as soon as that can be read."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return rows(self.deskhand, query)
            except AWAY:
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_S)

    def progress(self) -> Progress:
        ((status, message, step),) = self.rows(
            f"select status, message, step from experiments_experiment where id = {self.experiment}"
        )
        ((scored, newest),) = self.rows(
            f"select coalesce(sum(case when status in {SCORED} then 1 else 0 end), 0), coalesce(max(id), 0)"
            f" from trajectories_trajectory where experiment_id = {self.experiment}"
        )
        return Progress(status, message, step, int(scored), newest)

    def running(self, where: str = "true") -> list[int]:
        """Trajectories that a worker has in the middle of their turns."""
        query = (
            "select t.id from trajectories_trajectory t left join fleet_worker w on w.id = t.worker_id"
            f" where t.experiment_id = {self.experiment} and t.status = 'running' and t.num_turns > 0"
            f" and {where}"
        )
        return [number for (number,) in self.rows(query)]

    def wait_running(self, where: str = "true", *, least: int = 1, limit_s: float = 300) -> list[int]:
        """At least `least` of them. Raises Missed when the experiment ends before."""
        deadline = time.monotonic() + limit_s
        while len(found := self.running(where)) < least:
            if self.progress().status in FINAL or time.monotonic() > deadline:
                raise Missed("nothing was running")
            time.sleep(0.05)
        return found


@dataclass
class Run(Records):
    """The experiment of a lane, and the ground that its faults stand on."""

    deskhand: Instance
    stack: ExitStack
    """What lives until the lane's end."""
    cluster: Cluster | None = None
    links: Sequence[Network] = ()
    clock: Path | None = None
    """Where the processes' clock reads its offset."""
    hosts: list[JoinedMachine] = field(default_factory=list)
    """That joined, one behind each link."""

    def told(self, since: Mark) -> list[str]:
        """What pages, /healthz and the log say of it now, and what was recorded since then."""
        said = []
        with contextlib.suppress(httpx.TransportError):
            said.append(httpx.get(f"{self.deskhand.url}/healthz", timeout=5, trust_env=False).text[:300])
        with contextlib.suppress(*AWAY):
            said += [text for (text,) in rows(self.deskhand, _messages(self.experiment, since))]
        return [*said, *self._logged(since)]

    def _logged(self, since: Mark) -> Iterator[str]:
        """Warnings and worse of this installation's own logs, and all that the supervisor says."""
        for path in self._log_files():
            with path.open("rb") as file:
                file.seek(min(since.log_sizes.get(path.name, 0), path.stat().st_size))
                for line in file.read().decode(errors="replace").splitlines():
                    if " WARNING " in line or " ERROR " in line or path == self.deskhand.output:
                        yield f"{path.stem}: {line[-300:]}"

    def _log_files(self) -> list[Path]:
        return [self.deskhand.output, *sorted((self.folder / "logs").glob("*.log"))]

    def mark(self) -> Mark:
        ((incident,),) = self.rows("select coalesce(max(id), 0) from experiments_incident")
        ended = self.rows(
            f"select id from trajectories_trajectory where experiment_id = {self.experiment}"
            " and status = 'errored'"
        )
        sizes = {path.name: path.stat().st_size for path in self._log_files()}
        errored = ", ".join(str(number) for (number,) in ended) or "0"
        return Mark(self.progress(), incident, errored, sizes)


@dataclass(frozen=True)
class Mark:
    """A moment of a run."""

    progress: Progress
    newest_incident: int
    errored: str
    """Ids of trajectories that had errored before, separated by commas."""
    log_sizes: dict[str, int]


def _messages(experiment: int, since: Mark) -> str:
    return (
        f"select message from experiments_experiment where id = {experiment}"
        f" union select message from experiments_incident where id > {since.newest_incident}"
        f" union select distinct error from trajectories_trajectory where experiment_id = {experiment}"
        f" and status = 'errored' and id not in ({since.errored})"
    )
