"""Reports of a joined host: they wait in its spool, requests go over HTTPS. Connections only go out.

The spool is a SQLite file: neither the web's absence nor a crash loses a report. Numbers go up by one and are
never used again. A report and its screenshot are kept in one transaction.
"""

import fcntl
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import httpx
from django.db import OperationalError

from training.untrusted.packed_texts import packed
from webapp.lib.host_links.certificates import context_trusting
from webapp.lib.host_links.joined_identity import JoinedIdentity
from webapp.lib.outage_retries import patiently
from webapp.lib.remote_calls import RemoteCall, call_of
from webapp.worker_door.joined_hosts.batches import Batch, NamedFrame, Received, SentReport
from webapp.worker_door.joined_hosts.contract_version import version
from webapp.worker_door.trajectories import TrajectoryNow, beat_trajectories, look_at
from workers.desktops.frame import Frame
from workers.reports.contract import CallRefused, ServerAway

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

TIMEOUT_S = 20.0
BATCH = 50
BATCH_BYTES = 4 << 20
"""With the screenshots: a slow line has to carry it within TIMEOUT_S. A longer report goes alone."""
MAX_KNOWN_FRAMES = 10_000
GATHER_S = 0.1
"""Between two deliveries, so that several reports share a request: what people watch comes so much later."""
PAUSE_S = 1.0
"""Between two tries while the web is away."""
LATER = {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.BAD_GATEWAY, httpx.codes.SERVICE_UNAVAILABLE}
LATER |= {httpx.codes.GATEWAY_TIMEOUT, httpx.codes.INTERNAL_SERVER_ERROR}

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

    def oldest(self, count: int) -> list[SentReport]:
        """The next ones to deliver: as many as a slow line carries with their screenshots, at least one."""
        with self._lock:
            rows = self._database.execute(
                "SELECT number, name, body, trajectory, (SELECT coalesce(sum(length(png)), 0) FROM frames"
                " JOIN names USING (sha256) WHERE names.number = reports.number)"
                " FROM reports ORDER BY number LIMIT ?",
                [count],
            ).fetchall()
        ends = accumulate(len(body) + frame_bytes for _, _, body, _, frame_bytes in rows)
        return [
            SentReport(number=number, name=name, body=body, trajectory=trajectory)
            for (number, name, body, trajectory, _), end in zip(rows, ends, strict=True)
            if end <= BATCH_BYTES or number == rows[0][0]
        ]

    def newest(self) -> int:
        """Number of the last report; 0 when none waits."""
        with self._lock:
            return int(self._database.execute("SELECT coalesce(max(number), 0) FROM reports").fetchone()[0])

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


class SpooledReports:
    """One host's way to its installation; all threads of a process share it."""

    is_joined = True

    def __init__(self, identity: JoinedIdentity, spool: Spool) -> None:
        self.spool = spool
        self._now: dict[int, TrajectoryNow] = {}
        """What the server said with the last heartbeat, so that no turn waits for it."""
        self._known_frames: set[tuple[int, str]] = set()
        """(team, sha256) of screenshots that the server had; it looks again with each batch."""
        self._server = identity.server
        self._http = httpx.Client(
            base_url=identity.server,
            verify=context_trusting(identity.authority),
            timeout=TIMEOUT_S,
            headers={
                "Authorization": f"Bearer {identity.name}:{identity.secret}",
                "X-Deskhand-Version": version(),
            },
            trust_env=False,
        )

    def report(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        patiently(self._keep, call_of(function), args, kwargs, [])

    def report_with_screen(
        self, team_id: int, frame: Frame, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        named = [SpooledFrame(team_id, shown.sha256, shown.png) for shown in frame.pictures]
        named += [SpooledFrame(team_id, sha, packed(text)) for sha, text in frame.texts.blobs.items()]
        patiently(self._keep, call_of(function), args, kwargs, named)

    def request(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = call_of(function)
        if call.is_patient:
            return patiently(self._ask, call, args, kwargs)  # type: ignore[no-any-return]
        return self._ask(call, args, kwargs)  # type: ignore[no-any-return]

    def show_screen(self, trajectory_id: int, index: int, frame: Frame) -> None:
        """It comes with its turn: a slow line carries each picture once."""

    def beat_trajectories(self, running: Sequence[int]) -> None:
        """Also of those whose last reports are on their way."""
        held = sorted({*running, *self.spool.trajectories()})
        if held:
            self.request(beat_trajectories, held)
            self._now = self.request(look_at, held)

    def trajectory_now(self, trajectory_id: int) -> TrajectoryNow:
        return self._now.get(trajectory_id, TrajectoryNow())

    def _keep(
        self,
        call: RemoteCall,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        named: Sequence[SpooledFrame],
    ) -> None:
        """In the spool; a thread delivers it."""
        arguments, body = call.as_sent(args, kwargs)
        self.spool.add(call.name, body, arguments.get("trajectory_id"), named)

    def _ask(self, call: RemoteCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        _, body = call.as_sent(args, kwargs)
        answer = self._post(f"/hosts/ask/{call.name}/", body.encode())
        return call.answer.validate_json(answer.content)

    def deliver(self) -> int:
        """Bring the oldest reports, with their screenshots; how many. Raises ServerAway or CallRefused."""
        batch = self.spool.oldest(BATCH)
        if not batch:
            return 0
        named = self.spool.frames_until(batch[-1].number)
        received = self._send_with_frames(Batch(stream=self.spool.stream, reports=batch), named)
        for number, why in received.refused.items():
            log.warning("report %s was refused: %s", number, why)
        self.spool.drop_until(received.number)
        return len(batch)

    def deliver_forever(self) -> None:
        """Returns only while another process of the host delivers. Raises ServerAway or CallRefused."""
        while self.spool.deliver_alone():
            delivered = self.deliver()
            if not delivered:
                self.spool.wait(PAUSE_S)
            elif delivered < BATCH:
                time.sleep(GATHER_S)

    def _send_with_frames(self, batch: Batch, named: list[tuple[int, str]]) -> Received:
        """The batch and the screenshots of its reports, of those that the server had only the names."""
        received = self._send(batch, named, self._known_frames)
        if received.missing:  # it has deleted them since
            missing = {(frame.team, frame.sha256) for frame in received.missing}
            received = self._send(batch, named, self._known_frames - missing)
        self._known_frames.update(named)
        if len(self._known_frames) > MAX_KNOWN_FRAMES:
            self._known_frames.clear()
        return received

    def _send(self, batch: Batch, named: list[tuple[int, str]], known: set[tuple[int, str]]) -> Received:
        pngs = [b"" if frame in known else self.spool.read_frame(*frame) for frame in named]
        frames = [
            NamedFrame(team=team_id, sha256=sha256, size=len(png))
            for (team_id, sha256), png in zip(named, pngs, strict=True)
        ]
        line = batch.model_copy(update={"frames": frames}).model_dump_json().encode()
        answer = self._post("/hosts/reports/", b"\n".join([line, b"".join(pngs)]))
        return Received.model_validate_json(answer.content)

    def _post(self, path: str, body: bytes) -> httpx.Response:
        try:
            answer = self._http.post(path, content=body)
        except httpx.TransportError as error:
            raise ServerAway(f"{self._server} does not answer: {error}") from error
        if answer.is_success:
            return answer
        words = f"{path}: {answer.status_code} {answer.text[:500]}"
        raise ServerAway(words) if answer.status_code in LATER else CallRefused(words)
