"""Our client against a server that answers as the one in OSWorld's own image does: sentences, no pids."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from email.parser import BytesParser

import pytest

from testing.servers.answering import Answer, Request, answering
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import EnvError, ErrorKind

FILES: dict[str, bytes] = {}


def answer(request: Request) -> Answer:
    """The calls that the client makes, with the answers of OSWorld's server."""
    match request.method, request.path:
        case "POST", "/setup/launch":
            return Answer(b"mousepad launched successfully")
        case "POST", "/execute":
            return execute(json.loads(request.body))
        case "POST", "/setup/upload":
            return upload(request)
        case "POST", "/file":
            path = urllib.parse.parse_qs(request.body.decode())["file_path"][0]
            found = FILES.get(path)
            return Answer(found or b'{"error": "File not found"}', 404 if found is None else 200)
    return Answer(b"<h1>Not Found</h1>", 404, {"Content-Type": "text/html"})


def execute(body: dict) -> Answer:
    said = {"status": "success", "output": "hi\n", "error": "", "returncode": 0}
    if failed := body["command"] == ["nosuch"]:
        said = {"status": "error", "message": "[Errno 2] No such file or directory: 'nosuch'"}
    return Answer(json.dumps(said).encode(), 500 if failed else 200, {"Content-Type": "application/json"})


def upload(request: Request) -> Answer:
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    parts = BytesParser().parsebytes(head + request.body).get_payload()
    fields = {part.get_param("name", header="content-disposition"): part for part in parts}
    assert fields["file_data"].get_filename(), "a file needs a name to be taken for one"
    path = fields["file_path"].get_payload(decode=True).decode()
    FILES[path] = fields["file_data"].get_payload(decode=True)
    return Answer(b"File Uploaded")


@pytest.fixture
def agent() -> Iterator[AgentClient]:
    FILES.clear()
    with answering(answer) as url, AgentClient(url.removeprefix("http://")) as client:
        yield client


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
