"""A task for policies that read the accessibility tree, and such policies."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from training.content.task_sets.steps_and_evaluators import file_holds, setup_step
from training.contracts.types import Action, ActionKind, Completion, Task
from training.observations.widget_tree import widgets_of

ASK = (
    "zenity --question --title Choose --text 'Which one?' --ok-label Azure --cancel-label Crimson; "
    "echo $? > /home/user/answer.txt"
)
CHOOSE = Task(
    task_id="choose-crimson",
    instruction="Press the button Crimson.",
    config=(
        setup_step("launch", command=ASK, shell=True),
        setup_step("activate_window", window_name="Choose"),
    ),
    evaluator=file_holds("/home/user/answer.txt", "1", 3.0),
)


def press_crimson(tree: str) -> Action:
    """Click the button that the instruction names, or say that it is done where there is none."""
    named = (one for one in widgets_of(tree) if one.is_usable and one.name == "Crimson" and one.box)
    if (button := next(named, None)) is None or button.box is None:
        return Action(kind=ActionKind.TERMINATE, status="success")
    left, top, width, height = button.box
    return Action(kind=ActionKind.CLICK, x=left + width // 2, y=top + height // 2)


def click_crimson(text: str) -> str:
    """The completion that presses the button, where a turn's text has it."""
    place = re.search(r'^push-button "Crimson" (\d+),(\d+)', text, re.MULTILINE)
    if place is None:
        return '{"action": "terminate", "status": "success"}'
    return json.dumps({"action": "left_click", "coordinate": [int(place[1]), int(place[2])]})


class Reader(BaseHTTPRequestHandler):
    """A policy server whose policy sees a turn's text alone."""

    requests: list[bytes]
    answer: Callable[[str], str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(body)
        request = next(line for line in body.splitlines() if line.startswith(b'{"'))
        text = type(self).answer(json.loads(request)["text"])
        completion = Completion(text=text, token_ids=(1,), behaviour_logprobs=(-0.1,))
        sent = completion.model_dump_json().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served_policy(answer: Callable[[str], str]) -> Iterator[tuple[str, list[bytes]]]:
    """(URL, bodies of the requests for turns) of a policy that makes `answer` of each turn's text."""
    reader = type("Served", (Reader,), {"requests": [], "answer": staticmethod(answer)})
    server = HTTPServer(("127.0.0.1", 0), reader)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", reader.requests
    finally:
        server.shutdown()
        server.server_close()
