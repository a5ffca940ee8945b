"""A small JSON server in a thread: stands in for a coordinator where there is no installation."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asks."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    """Parsed JSON; None of a GET."""
    authorization: str


class Refused(Exception):
    """Raised by a handler that answers with an error."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(f"{status}: {answer}")
        self.status = status
        self.answer = answer


class JsonServer:
    """Serves on a free port of the loopback interface from its making until `close`."""

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        """`answer` gives the JSON of the answer, or raises Refused; it is called by several threads."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(answer: Callable[[Request], Any]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(None)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._serve(json.loads(self.rfile.read(length) or b"{}"))

        def _serve(self, body: Any) -> None:
            url = urlsplit(self.path)
            request = Request(
                method=self.command,
                path=url.path,
                query={key: values[0] for key, values in parse_qs(url.query).items()},
                body=body,
                authorization=self.headers.get("Authorization") or "",
            )
            try:
                status, answered = 200, answer(request)
            except Refused as refused:
                status, answered = refused.status, refused.answer
            payload = json.dumps(answered).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
