"""What the desktop's server answered during a call.

DesktopEnv turns a server that does not answer into None, and its evaluators turn None into 0. Here every
request is seen, so that a lost desktop is distinguished from a failed task.
"""

import threading
from typing import Any
from urllib.parse import urlsplit

import requests


class RecordedAnswers:
    """Watches the requests of this process to one server. One per process."""

    def __init__(self) -> None:
        self.address = ""
        """host:port of the desktop's server."""
        self.lost = ""
        """The last request that got no answer; "" again as soon as one is answered."""
        self.refused: list[str] = []
        """Setup requests that were answered with an error."""
        self.executed: dict[str, Any] = {}
        """The answer to the last /execute."""
        self._lock = threading.Lock()

    def begin(self) -> None:
        """A call starts: forget the last one's requests."""
        self.lost, self.refused, self.executed = "", [], {}

    def watch(self) -> None:
        """Put this in front of every request that the library sends."""
        send = requests.Session.send

        def watched(session: requests.Session, request: Any, **options: Any) -> requests.Response:
            url = urlsplit(request.url)
            if url.netloc != self.address:
                return send(session, request, **options)
            try:
                response = send(session, request, **options)
            except requests.RequestException as error:
                self.lost = f"{request.method} {url.path}: {error}"
                raise
            self._note(url.path, response)
            return response

        requests.Session.send = watched  # type: ignore[method-assign,assignment]

    def _note(self, path: str, response: requests.Response) -> None:
        with self._lock:
            self.lost = ""
            if path == "/execute":
                self.executed = answer_of(response)
            elif path.startswith("/setup/") and response.status_code != 200:
                message = answer_of(response).get("message") or response.text[:300]
                self.refused.append(f"{path}: {message}")


def answer_of(response: requests.Response) -> dict[str, Any]:
    """The JSON object of an answer; {} when it is none."""
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
