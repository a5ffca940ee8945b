"""A desktop's agent for OSWorld tests: OSWorld's HTTP protocol on a unix socket, misbehaving on demand.

Commands really run, in a folder of their own; nothing is drawn.
"""

from __future__ import annotations

import io
import json
import socketserver
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from PIL import Image


def png(colour: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(out, "PNG")
    return out.getvalue()


class Agent(socketserver.ThreadingUnixStreamServer):
    """`refuse` holds the paths that are answered by 500, `drop` those whose connection is closed."""

    daemon_threads = True

    def __init__(self, socket: Path, home: Path) -> None:
        super().__init__(str(socket), Handler)
        self.home = home
        self.behave()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def behave(self) -> None:
        """As it was at first."""
        self.screenshot: bytes = png("navy")
        self.refuse: set[str] = set()
        self.drop: set[str] = set()
        self.actions: list[str] = []
        self.requests: list[str] = []

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Agent

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _serve(self, body: bytes) -> None:
        self.server.requests.append(self.path)
        if self.path in self.server.drop:
            self.close_connection = True
            return
        if self.path in self.server.refuse:
            self._answer(500, json.dumps({"status": "error", "message": "refused by the test"}).encode())
            return
        self._answer(*self._result(body))

    def _result(self, body: bytes) -> tuple[int, bytes]:
        if self.path == "/screenshot":
            return 200, self.server.screenshot
        if self.path == "/terminal":
            return 200, b'{"output": null}'
        if self.path == "/file":
            path = self.server.home / urllib.parse.parse_qs(body.decode())["file_path"][0].lstrip("/")
            return (200, path.read_bytes()) if path.is_file() else (404, b"{}")
        if self.path in ("/execute", "/setup/execute"):
            return 200, json.dumps(self._execute(json.loads(body))).encode()
        return 404, b'{"status": "error", "message": "no such route"}'

    def _execute(self, request: dict[str, Any]) -> dict[str, Any]:
        command = request["command"]
        if command[:2] == ["python", "-c"]:
            self.server.actions.append(command[2].rpartition("FAILSAFE = False; ")[2])
            failed = "nosuchkey" in command[2]
            return {"status": "success", "output": "", "error": "bad key" * failed, "returncode": int(failed)}
        done = subprocess.run(
            command, shell=request["shell"], cwd=self.server.home, capture_output=True, text=True, check=False
        )
        result = {"output": done.stdout, "error": done.stderr, "returncode": done.returncode}
        return {"status": "success", **result}

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
