"""Reports that wait for delivery, in a SQLite file: neither the web's absence nor a crash loses one.

Numbers go up by one and are never used again. A report and its screenshot are kept in one transaction.
"""

import fcntl
import secrets
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import OperationalError

TABLES = """
CREATE TABLE IF NOT EXISTS stream (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reports (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, body TEXT NOT NULL,
    trajectory INTEGER, frame TEXT);
CREATE TABLE IF NOT EXISTS names (number INTEGER, sha256 TEXT, PRIMARY KEY (number, sha256));
CREATE INDEX IF NOT EXISTS names_by_sha256 ON names (sha256);
INSERT OR IGNORE INTO names SELECT number, frame FROM reports WHERE frame NOT NULL;
CREATE TABLE IF NOT EXISTS frames (team INTEGER, sha256 TEXT, png BLOB NOT NULL, PRIMARY KEY (team, sha256));
"""


@dataclass(frozen=True, slots=True)
class SpooledFrame:
    """A screenshot, or a text as `texts.packed` makes it, that has to be there before its report."""

    team_id: int
    sha256: str
    png: bytes


@dataclass(frozen=True, slots=True)
class SpooledReport:
    """One report that waits."""

    number: int
    name: str
    body: str
    """JSON."""
    trajectory: int | None
    """That it is about."""
    frame_bytes: int
    """Length of what it names; 0 when it names nothing."""


class Spool:
    """The queue of one host; any thread of its workers may add."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._database = sqlite3.connect(path, check_same_thread=False, timeout=20)
        self._lock = threading.Lock()
        self._deliveries = path.with_suffix(".lock").open("a")
        self._added = threading.Condition()
        with path.with_suffix(".opening").open("a") as opening:
            # SQLite does not wait for its turn to write ahead: of two that open a new file, one fails.
            fcntl.flock(opening, fcntl.LOCK_EX)
            self.stream = self._set_up()
            """Names this spool to the server: another one counts anew."""

    def _set_up(self) -> str:
        """Make what a new file lacks. The stream's name."""
        self._database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {TABLES}")
        with self._database as database:
            if database.execute("SELECT 1 FROM stream").fetchone() is None:
                database.execute("INSERT INTO stream VALUES (?)", [secrets.token_hex(16)])
            return str(database.execute("SELECT name FROM stream").fetchone()[0])

    def add(self, name: str, body: str, trajectory_id: int | None, named: Sequence[SpooledFrame]) -> None:
        """Keep a report until it is delivered. Raises Django's OperationalError when there is no room."""
        values = (name, body, trajectory_id)
        try:
            with self._lock, self._database as database:
                report = "INSERT INTO reports (name, body, trajectory) VALUES (?, ?, ?)"
                number = database.execute(report, values).lastrowid
                for frame in named:
                    row = (frame.team_id, frame.sha256, frame.png)
                    database.execute("INSERT OR IGNORE INTO frames VALUES (?, ?, ?)", row)
                    database.execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (number, frame.sha256))
        except sqlite3.OperationalError as error:
            raise OperationalError(f"this host's spool takes no report: {error}") from error
        with self._added:
            self._added.notify_all()

    def oldest(self, count: int) -> list[SpooledReport]:
        """The next ones to deliver."""
        with self._lock:
            rows = self._database.execute(
                "SELECT number, name, body, trajectory, (SELECT coalesce(sum(length(png)), 0) FROM frames"
                " JOIN names USING (sha256) WHERE names.number = reports.number)"
                " FROM reports ORDER BY number LIMIT ?",
                [count],
            ).fetchall()
        return [SpooledReport(*row) for row in rows]

    def newest(self) -> int:
        """Number of the last report; 0 when none waits."""
        with self._lock:
            return int(self._database.execute("SELECT coalesce(max(number), 0) FROM reports").fetchone()[0])

    def holds_until(self, number: int) -> bool:
        """Whether a report up to `number` waits."""
        with self._lock:
            found = self._database.execute("SELECT 1 FROM reports WHERE number <= ? LIMIT 1", [number])
            return found.fetchone() is not None

    def frames_until(self, number: int) -> list[tuple[int, str]]:
        """(team, sha256) of the screenshots that reports up to `number` name."""
        with self._lock:
            return self._database.execute(
                "SELECT DISTINCT team, sha256 FROM frames JOIN names USING (sha256) WHERE number <= ?",
                [number],
            ).fetchall()

    def read_frame(self, team_id: int, sha256: str) -> bytes:
        with self._lock:
            row = self._database.execute(
                "SELECT png FROM frames WHERE team = ? AND sha256 = ?", [team_id, sha256]
            ).fetchone()
        return bytes(row[0])

    def drop_until(self, number: int) -> None:
        """They are delivered, and so are the screenshots that no other report needs."""
        with self._lock, self._database as database:
            for table in ("reports", "names"):
                database.execute(f"DELETE FROM {table} WHERE number <= ?", [number])
            database.execute("DELETE FROM frames WHERE sha256 NOT IN (SELECT sha256 FROM names)")

    def trajectories(self) -> set[int]:
        """Those of which something waits."""
        with self._lock:
            rows = self._database.execute("SELECT DISTINCT trajectory FROM reports WHERE trajectory NOT NULL")
            return {row[0] for row in rows}

    def deliver_alone(self) -> bool:
        """Become the process of this host that delivers, until it ends; False while another one is."""
        try:
            fcntl.flock(self._deliveries, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait(self, seconds: float) -> None:
        """Until something is added, `seconds` at most."""
        with self._added:
            self._added.wait(seconds)

    def close(self) -> None:
        self._deliveries.close()
        with self._lock:
            self._database.close()
