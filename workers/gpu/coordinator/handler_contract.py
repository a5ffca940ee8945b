"""What every handler of a route gets; each answers here or passes the request on."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training.contracts.route_types import Answered, Asked, Route
from webapp.worker_door.trainer_requests.answers import HANDLERS, answer_trainer, take_report
from webapp.worker_door.trainer_requests.contract import NOTHING, RequestRefused
from workers.gpu.policy_server_process import PolicyServer
from workers.reports.current import reports


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """The attempt that a coordinator serves."""

    attempt_id: int
    policy: PolicyServer


@dataclass(frozen=True, slots=True)
class LocalHandler:
    """A route and the function that answers it: with an object, or the JSON of one."""

    route: Route[Any, Any]
    answer: Callable[[AttemptContext, Any], Any]


def handles(
    route: Route[Asked, Answered], answer: Callable[[AttemptContext, Asked], Answered]
) -> LocalHandler:
    """The pair, typed: the function takes what the route asks and gives what it answers."""
    return LocalHandler(route, answer)


def passed_on() -> tuple[LocalHandler, ...]:
    """Of every route that is answered where the database is."""
    return tuple(
        LocalHandler(handler.route, _telling(handler.route) if handler.is_report else _asking(handler.route))
        for handler in HANDLERS
    )


def _asking(route: Route[Any, Any]) -> Callable[[AttemptContext, Any], bytes]:
    def answer(context: AttemptContext, asked: Any) -> bytes:
        key = uuid.uuid4().hex
        found = reports().request(
            answer_trainer, context.attempt_id, str(route), route.keep_request(asked), key
        )
        if found.status != 200:
            raise RequestRefused(found.message, found.status, code=found.code)
        return found.body.encode()

    return answer


def _telling(route: Route[Any, Any]) -> Callable[[AttemptContext, Any], Any]:
    def answer(context: AttemptContext, asked: Any) -> Any:
        reports().report(take_report, context.attempt_id, str(route), route.keep_request(asked))
        return NOTHING

    return answer
