"""The child's end of the pipes: one JSON object per line and nothing else.

Standard output becomes the log before the library is imported, because the library prints. The parent's
pipe is read by a thread of its own, so that the parent's death is noticed in the middle of a call.
"""

import json
import os
import queue
import threading
from collections.abc import Callable
from typing import Any


class Pipe:
    """Calls in, answers and questions out."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        self._in = os.fdopen(os.dup(0), "rb")
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self._on_end = on_end
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, name="wire", daemon=True).start()

    def _read(self) -> None:
        for line in self._in:
            self._lines.put(json.loads(line))
        self._on_end()

    def receive(self) -> dict[str, Any]:
        """The next line of the parent."""
        return self._lines.get()

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[self._out.write(data) or 0 :]

    def ask(self, question: str) -> None:
        """Have the parent do something during a call. Raises RuntimeError with its reason if it cannot."""
        self.send({"ask": question})
        reply = self.receive()
        if reply.get("refusal"):
            raise RuntimeError(f"{question}: {reply['refusal']}")
