"""A policy server of a test's own: a function says the completion of each request for a turn."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from training.contracts.types import Completion


@contextmanager
def served_completions(
    complete: Callable[[dict[str, Any]], Completion],
) -> Iterator[tuple[str, list[bytes]]]:
    """(URL, bodies of the requests for turns); it takes one request after the other."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(body)
            request = next(line for line in body.splitlines() if line.startswith(b'{"'))
            sent = complete(json.loads(request)).model_dump_json().encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def do_DELETE(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        server.server_close()
