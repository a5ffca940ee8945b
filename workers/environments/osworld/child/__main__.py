"""Answers the parent's calls until its pipe closes: `python -m workers.environments.osworld.child`."""

import logging
import os
import shutil
import sys
import threading
import traceback
from typing import Any

from workers.environments.osworld.child import missing_packages
from workers.environments.osworld.child.failures import Failure
from workers.environments.osworld.child.pipe import Pipe

CLOSE_LIMIT_S = 60.0
"""For a machine of the library's own providers to stop after the parent died."""


class Process:
    """Ties the pipes to the session."""

    def __init__(self) -> None:
        self._folder = os.getcwd()
        self._session: Any = None
        self._wire = Pipe(self._parent_ended)

    def run(self) -> None:
        from workers.environments.osworld.child.answer_watch import RecordedAnswers
        from workers.environments.osworld.child.session import Session

        traffic = RecordedAnswers()
        traffic.watch()
        self._session = Session(traffic, self._wire.ask)
        calls = self._session.calls()
        self._wire.send({"ready": True})
        while True:
            message = self._wire.receive()
            traffic.begin()
            self._wire.send(answer(calls, message))

    def _parent_ended(self) -> None:
        """Give everything back that would outlive this process."""
        threading.Timer(CLOSE_LIMIT_S, os._exit, (1,)).start()
        try:
            if self._session is not None:
                self._session.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            os._exit(0)


def answer(calls: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """One call's result, or why there is none; no failure of the library ends the process."""
    try:
        return {"id": message["id"], "result": calls[message["call"]](**message["arguments"])}
    except Failure as failure:
        error = {"kind": failure.kind, "message": str(failure)}
    except Exception as exc:  # noqa: BLE001 - the edge of the process: the parent decides what it means
        traceback.print_exc()
        error = {"kind": "infra", "message": f"{type(exc).__name__}: {exc}"}
    return {"id": message["id"], "error": error}


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s: %(message)s")
    # At INFO the library logs every answer whole, screenshots' sizes to files' contents.
    logging.getLogger("desktopenv").setLevel(logging.WARNING)
    missing_packages.install()
    Process().run()


if __name__ == "__main__":
    main()
