"""Requests to addresses that people name: allowed addresses only, in bounded time and memory.

What a name stands for can change between a check and the connection; so the address that was checked is the
one that is connected to.
"""

import math
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from training.outgoing.remote_addresses import Network, allowed_addresses


class AllowedConnections(httpcore.SyncBackend):
    """httpcore's own network, behind the check. Raises RefusedAddress."""

    def __init__(self, networks: Sequence[Network], ends: float = math.inf) -> None:
        """`ends`: when every connection is over, by the monotonic clock, however slowly it trickles."""
        self._networks = networks
        self._ends = ends

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = allowed_addresses(host, port, self._networks)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        ends = min(self._ends, math.inf if timeout is None else time.monotonic() + timeout)
        for number, address in enumerate(addresses, start=1):
            left = _left(timeout, ends, httpcore.ConnectTimeout)
            try:
                stream = super().connect_tcp(address, port, left, local_address, socket_options)
                return stream if self._ends == math.inf else _StreamUntil(stream, self._ends)
            except httpcore.ConnectError:
                if number == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")


class _StreamUntil(httpcore.NetworkStream):
    """A stream whose calls share one deadline."""

    def __init__(self, stream: httpcore.NetworkStream, ends: float) -> None:
        self._stream, self._ends = stream, ends

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, self._ends, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, self._ends, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(timeout, self._ends, httpcore.ConnectTimeout)
        return _StreamUntil(self._stream.start_tls(ssl_context, server_hostname, left), self._ends)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, ends: float, too_late: type[Exception]) -> float | None:
    left = ends - time.monotonic()
    if left <= 0:
        raise too_late
    return timeout if left == math.inf else min(math.inf if timeout is None else timeout, left)


def guard(client: httpx.Client, connections: AllowedConnections) -> None:
    """Have a client connect by `connections` alone; a proxy keeps its own network."""
    client._transport._pool._network_backend = connections  # type: ignore[attr-defined]  # no other place


class AnswerTooLarge(ValueError):
    """Raised for an answer that is larger than anything its server should say."""


def read_at_most(pieces: Iterator[bytes], most: int) -> bytes:
    """All of an answer's body. Raises AnswerTooLarge."""
    found, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise AnswerTooLarge(f"an answer of more than {most >> 20} MiB")
        found.append(piece)
    return b"".join(found)


@dataclass(frozen=True, slots=True)
class Posted:
    status: int
    headers: httpx.Headers
    body: bytes


def post_guarded(
    url: str,
    *,
    networks: Sequence[Network],
    within_s: float,
    most: int = 0,
    tls: ssl.SSLContext | bool = True,
    **request: Any,
) -> Posted:
    """One POST without redirects and proxies, with one deadline for all of it.

    `most`: bytes of the answer that are read; 0 = its body is not wanted.
    Raises RefusedAddress, AnswerTooLarge, httpx.HTTPError and httpx.InvalidURL.
    """
    with httpx.Client(verify=tls, timeout=within_s, trust_env=False, follow_redirects=False) as client:
        guard(client, AllowedConnections(networks, time.monotonic() + within_s))
        # Packed answers could unpack to anything.
        client.headers["accept-encoding"] = "identity"
        with client.stream("POST", url, **request) as answer:
            body = read_at_most(answer.iter_raw(), most) if most else b""
            return Posted(answer.status_code, answer.headers, body)
