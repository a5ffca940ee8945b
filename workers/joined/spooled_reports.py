"""Reports of a joined host: they wait in its spool, requests go over HTTPS. Connections only go out."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import httpx

from training.untrusted.packed_texts import packed
from webapp.lib.host_links.certificates import context_trusting
from webapp.lib.host_links.joined_identity import JoinedIdentity
from webapp.lib.outage_retries import patiently
from webapp.lib.remote_calls import RemoteCall, call_of
from webapp.worker_door.joined_hosts.batches import Batch, NamedFrame, Received, SentReport
from webapp.worker_door.joined_hosts.contract import version
from webapp.worker_door.trajectories import TrajectoryNow, beat_trajectories, look_at
from workers.desktops.frame import Frame
from workers.joined.spool import Spool, SpooledFrame
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
        batch: list[SentReport] = []
        size = 0
        for waiting in self.spool.oldest(BATCH):
            size += len(waiting.body) + waiting.frame_bytes
            if batch and size > BATCH_BYTES:
                break
            batch.append(
                SentReport(
                    number=waiting.number,
                    name=waiting.name,
                    body=waiting.body,
                    trajectory=waiting.trajectory,
                )
            )
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
