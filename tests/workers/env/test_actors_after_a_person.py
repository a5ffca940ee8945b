"""The policy's own turns are counted by themselves: a person may have taken turns between them."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from training.contracts.config import ExperimentConfig
from training.contracts.types import Completion, Observation, Source, Task
from webapp.worker_door.assignments import Assignment
from workers.env.actors import PolicyActor

ANSWER = Completion(text='{"action":"key","keys":["Return"]}', token_ids=(1,), behaviour_logprobs=(-0.1,))


@pytest.fixture
def policy() -> Iterator[tuple[str, list[int]]]:
    """(URL, the turn numbers that it was asked for) of a policy server that always presses Return."""
    asked: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = next(line for line in body.splitlines() if line.startswith(b'{"'))
            asked.append(json.loads(request)["turn_index"])
            text = ANSWER.model_dump_json().encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_DELETE(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_the_policy_is_asked_for_its_next_turn_whatever_a_person_did_between(policy):
    url, asked = policy
    assignment = Assignment(
        row=SimpleNamespace(pk=5),
        task=Task(task_id="t", instruction="i"),
        config=ExperimentConfig.model_validate({"prompt": {"observation": []}}),
        source=Source.POLICY,
        temperature=1.0,
        policy_url=url,
        policy_token="token",
    )
    actor = PolicyActor(assignment)
    seen = Observation(sha256="", width=512, height=384, text="i")
    for index in (0, 1, 6):  # the record has a person's turns 2 to 5
        assert actor.decide(index, b"", seen, []).actions
    actor.close()
    assert asked == [0, 1, 2]
