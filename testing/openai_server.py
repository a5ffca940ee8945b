"""A language model's server of the OpenAI protocol that answers from what the transcript says.

    python -m testing.openai_server LOG        prints its address; every request is a JSON line in LOG

It finds something where the program claims to have done it while the screen did not change. A model of
another name makes it answer as that name says: "busy" (503, then well), "chatty" (no JSON), "broken" (500),
"attacker" (scripts against a task, of which two cannot run).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testing.paths import REPOSITORY

STILL = re.compile(r"Turn (\d+)\n  said: [^\n]*\n  did: [^\n]*\n  then: the screen did not change")
KEY = "the-key-of-the-model"


def answer(messages: list[dict[str, Any]]) -> str:
    """What the model says of the transcript in the last message."""
    content = messages[-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    found = STILL.search(text)
    said = {"found": found is not None, "turn": int(found[1]) if found else None, "why": "nothing moved"}
    return f"Here is my answer:\n```json\n{json.dumps(said if found else said | {'why': ''})}\n```"


PATH = re.compile(r"/home/desk/[\w.]+")


def attacks(messages: list[dict[str, Any]]) -> str:
    """Scripts against the task in the last message."""
    found = PATH.search(messages[-1]["content"])
    step = {"path": found[0] if found else "/tmp/x", "content": "red hen"}
    scripts = [
        {"name": "fills the file", "steps": [{"type": "write_file", "parameters": step}], "actions": []},
        {
            "name": "types",
            "actions": [{"kind": "type", "text": "red hen"}, {"kind": "key", "keys": ["ctrl", "s"]}],
        },
        {"name": "runs a program", "steps": [{"type": "execute", "parameters": {"command": "rm -r /"}}]},
        {"name": "jumps", "actions": [{"kind": "jump"}]},
    ]
    return f"```json\n{json.dumps(scripts)}\n```"


class Handler(BaseHTTPRequestHandler):
    """One call of chat completions."""

    log: Path
    seen: set[str] = set()
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.lock, self.log.open("a") as log:
            log.write(json.dumps({"path": self.path, "key": self.headers["authorization"], **body}) + "\n")
            is_first = body["model"] not in self.seen
            self.seen.add(body["model"])
        if self.path != "/v1/chat/completions" or self.headers["authorization"] != f"Bearer {KEY}":
            return self.reply(401, {"error": {"message": "wrong key or path"}})
        if body["model"] == "broken" or (body["model"] == "busy" and is_first):
            return self.reply(503, {"error": {"message": "no room"}})
        if body["model"] == "chatty":
            text = "I would rather talk about it."
        else:
            text = (attacks if body["model"] == "attacker" else answer)(body["messages"])
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        self.reply(200, {"choices": [{"index": 0, "message": message}], "usage": usage})

    def reply(self, status: int, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def openai_server(log: Path) -> Iterator[str]:
    """Its address, up to /v1; a process of its own."""
    log.touch()
    command = [sys.executable, "-m", "testing.openai_server", str(log)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    Handler.log = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/v1\n")
    sys.stdout.flush()
    server.serve_forever()
