"""A client of the env server: JSON over HTTP with the standard library, as trainers' clients do it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from testing.workers.env_server_thread import TOKEN


class Client:
    """Of the server at `url`; a token may stand in it, for trainers whose client sends no header."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/json", **headers}

    def ask(self, path: str, body: object = None, key: str = "") -> tuple[int, dict, dict]:
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.loads(answer.read()), dict(answer.headers)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read()), dict(error.headers)

    def good(self, path: str, body: object = None, key: str = "") -> dict:
        status, answer, _ = self.ask(path, body, key)
        assert status == 200, answer
        return answer


def posted(server: str, path: str, body: bytes) -> tuple[int, dict]:
    """What the server answers to any bytes."""
    request = urllib.request.Request(server + path, body, {"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
