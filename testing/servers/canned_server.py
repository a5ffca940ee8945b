"""A server in a thread that answers what a test lays down, whatever it is asked: hostile ones, too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class CannedServer:
    """By path, without what follows "?"; `otherwise` for all others."""

    url: str
    answers: dict[str, Any] = field(default_factory=dict)
    """Bytes as they are, other values as JSON."""
    otherwise: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    asked: list[str] = field(default_factory=list)
    """METHOD PATH of each request."""

    def body(self, method: str, path: str) -> bytes:
        self.asked.append(f"{method} {path}")
        found = self.answers.get(path.partition("?")[0], self.otherwise)
        return found if isinstance(found, bytes) else json.dumps(found).encode()


@contextmanager
def canned_server() -> Iterator[CannedServer]:
    """Serves on the loopback interface."""
    made = CannedServer("")

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = made.body(self.command, self.path)
            self.send_response(made.status)
            for name, value in {"Content-Length": str(len(body)), **made.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = answer

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()
