"""What every handler of a route gets, and how it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training.contracts.config import ExperimentConfig
from training.contracts.route_types import Answered, Asked, Nothing, Route
from workers.gpu.policy_server_process import PolicyServer

NOTHING = Nothing()


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """The attempt that a coordinator serves."""

    experiment_id: int
    team_id: int
    attempt: int
    config: ExperimentConfig
    policy: PolicyServer


class RequestRefused(Exception):
    """Raised when a well-formed request cannot be served; carries the HTTP status and the problem's code."""

    def __init__(self, message: str, status: int = 400, *, code: str = "refused") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Handler:
    """A route and the function that answers it."""

    route: Route[Any, Any]
    answer: Callable[[AttemptContext, Any], Any]


def handles(route: Route[Asked, Answered], answer: Callable[[AttemptContext, Asked], Answered]) -> Handler:
    """The pair, typed: the function takes what the route asks and gives what it answers."""
    return Handler(route, answer)
