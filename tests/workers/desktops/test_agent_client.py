"""Our client against a server that answers as the one in OSWorld's own image does: sentences, no pids."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import EnvError, ErrorKind

FILES: dict[str, bytes] = {}


class Handler(BaseHTTPRequestHandler):
    """The calls that the client makes, with the answers of OSWorld's server."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Silent."""

    def answer(self, status: int, body: bytes, kind: str = "text/html") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer(404, b"<h1>Not Found</h1>")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/setup/launch":
            self.answer(200, b"mousepad launched successfully")
        elif self.path == "/execute":
            self.execute(json.loads(body))
        elif self.path == "/setup/upload":
            self.upload(body)
        elif self.path == "/file":
            path = urllib.parse.parse_qs(body.decode())["file_path"][0]
            found = FILES.get(path)
            self.answer(404 if found is None else 200, found or b'{"error": "File not found"}')
        else:
            self.answer(404, b"<h1>Not Found</h1>")

    def execute(self, body: dict) -> None:
        if body["command"] == ["nosuch"]:
            said = {"status": "error", "message": "[Errno 2] No such file or directory: 'nosuch'"}
            self.answer(500, json.dumps(said).encode(), "application/json")
            return
        said = {"status": "success", "output": "hi\n", "error": "", "returncode": 0}
        self.answer(200, json.dumps(said).encode(), "application/json")

    def upload(self, body: bytes) -> None:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = BytesParser().parsebytes(head + body).get_payload()
        fields = {part.get_param("name", header="content-disposition"): part for part in parts}
        assert fields["file_data"].get_filename(), "a file needs a name to be taken for one"
        path = fields["file_path"].get_payload(decode=True).decode()
        FILES[path] = fields["file_data"].get_payload(decode=True)
        self.answer(200, b"File Uploaded")


@pytest.fixture
def agent() -> Iterator[AgentClient]:
    FILES.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with AgentClient(f"127.0.0.1:{server.server_port}") as client:
        yield client
    server.shutdown()
    server.server_close()
    thread.join()


def test_programs_are_launched_and_commands_run(agent):
    assert agent.launch(["mousepad"]) == 0
    assert agent.execute(["echo", "hi"]).output == "hi\n"
    with pytest.raises(EnvError, match="No such file or directory: 'nosuch'") as caught:
        agent.execute(["nosuch"])
    assert caught.value.kind is ErrorKind.GUEST


def test_files_travel_both_ways(agent):
    data = bytes(range(256)) * 3
    agent.put("/home/user/täst.bin", data)
    assert agent.get("/home/user/täst.bin") == data
    assert agent.get("/home/user/none") is None


def test_a_page_that_is_no_json_becomes_a_clear_error(agent):
    with pytest.raises(EnvError, match="/nothing failed in the desktop: <h1>Not Found"):
        agent.ask("/nothing", {})
