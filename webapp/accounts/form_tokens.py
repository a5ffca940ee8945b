"""Forms that create: a double click, or the same form sent again, makes one thing and leads to its page."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase

from webapp.accounts.services.sent_requests import FORM_TOKEN, Sent, StillRunning, answer_once, read_sent
from webapp.lib.error_pages import answer_error

WAIT_S = 20.0
"""How long the second click waits for what the first one makes."""
POLL_S = 0.1
RUNNING = "The same form was sent before and is still at work. Wait a moment, then look for its result."
View = Callable[..., HttpResponseBase]


def once_per_form(view: View) -> View:
    """The view, which does a form with `{% form_token %}` once; what it refused can be sent again."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **arguments: Any) -> HttpResponseBase:
        token = request.POST.get(FORM_TOKEN, "")
        if not token:
            return view(request, *args, **arguments)
        sent = read_sent(request, token, FORM_TOKEN, names_body=True)
        try:
            return _first_answer(sent, lambda: view(request, *args, **arguments))
        except StillRunning:
            return answer_error(request, 409, "still_running", RUNNING)

    return answer


def _first_answer(sent: Sent, work: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            return answer_once(sent, work, lambda status: status < 400)
        except StillRunning:
            if time.monotonic() > ends:
                raise
        time.sleep(POLL_S)
