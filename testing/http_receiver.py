"""A web server that keeps what it is sent, and answers as it is told."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: Message
    body: bytes


class HttpReceiver:
    """Serves on a free port of the loopback interface; a context manager."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: deque[tuple[int, dict[str, str]]] = deque()
        """(status, headers) of the next requests; 204 after them."""
        self.body = b""
        """Of every answer."""
        self.num_bodies = 1
        """How often it is sent."""
        self.trickles = False
        """Send the answer's head a byte at a time and never finish it."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> HttpReceiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                receiver.received.append(Received(self.path, self.headers, body))
                if receiver.trickles:
                    return self._trickle()
                status, headers = receiver.answers.popleft() if receiver.answers else (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(receiver.body) * receiver.num_bodies))
                self.end_headers()
                with suppress(OSError):  # the client may give up
                    for _ in range(receiver.num_bodies):
                        self.wfile.write(receiver.body)

            def _trickle(self) -> None:
                self.close_connection = True
                with suppress(OSError):  # the client gives up
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
                    while True:
                        self.wfile.write(b"x")
                        time.sleep(0.05)

            def log_message(self, format: str, *args: object) -> None:
                """Tests say what they need."""

        return Handler
