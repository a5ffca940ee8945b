"""The door of a joined host: questions over HTTPS, reports through the spool. Connections only go out."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

import httpx
from django.db import OperationalError

from webapp.lib.host_links.certificates import context_trusting
from webapp.lib.host_links.joined_identity import JoinedIdentity
from webapp.lib.remote_calls import RemoteCall
from webapp.worker_door.joined_hosts.batches import Batch, NamedFrame, Received, SentReport
from webapp.worker_door.joined_hosts.contract import version
from workers.door.spool import Spool, SpooledFrame

log = logging.getLogger(__name__)

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


class DoorClosed(OperationalError):
    """Raised when the web does not answer: for a worker the same as a database that is away."""


class DoorRefused(Exception):
    """Raised when the server does not want this host or its call; the message says what to do."""


class HttpsDoor:
    """One host's way to its installation."""

    def __init__(self, identity: JoinedIdentity, spool: Spool) -> None:
        self.spool = spool
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

    def ask(self, call: RemoteCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The answer. Raises DoorClosed or DoorRefused."""
        answer = self._post(f"/hosts/ask/{call.name}/", call.write(call.bound(args, kwargs)))
        return call.answer.validate_json(answer.content)

    def tell(
        self,
        call: RemoteCall,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        frame: SpooledFrame | None = None,
    ) -> None:
        """Keep a report; a thread delivers it."""
        bound = call.bound(args, kwargs)
        self.spool.add(call.name, call.write(bound), bound.get("trajectory_id"), frame)

    def deliver(self) -> int:
        """Bring the oldest reports, with their screenshots; how many. Raises DoorClosed or DoorRefused."""
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
        """Returns only while another process of the host delivers. Raises DoorClosed or DoorRefused."""
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
            raise DoorClosed(f"{self._server} does not answer: {error}") from error
        if answer.is_success:
            return answer
        words = f"{path}: {answer.status_code} {answer.text[:500]}"
        raise DoorClosed(words) if answer.status_code in LATER else DoorRefused(words)
