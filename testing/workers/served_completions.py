"""A policy server of a test's own: a function says the completion of each request for a turn."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from testing.servers.answering import Answer, Request, answering
from training.contracts.types import Completion


@contextmanager
def served_completions(
    complete: Callable[[dict[str, Any]], Completion],
) -> Iterator[tuple[str, list[bytes]]]:
    """(URL, bodies of the requests for turns); it takes one request after the other."""
    bodies: list[bytes] = []

    one_by_one = threading.Lock()

    def answer(request: Request) -> Answer:
        if request.method == "DELETE":
            return Answer(status=204)
        with one_by_one:
            bodies.append(request.body)
            asked = next(line for line in request.body.splitlines() if line.startswith(b'{"'))
            return Answer(complete(json.loads(asked)).model_dump_json().encode())

    with answering(answer) as url:
        yield url, bodies
