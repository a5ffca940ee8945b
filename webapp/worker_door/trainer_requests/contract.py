"""What every handler of a trainer's request gets, and how it refuses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training.contracts.config import ExperimentConfig
from training.contracts.route_types import Answered, Asked, Nothing, Route
from webapp.experiments.models import Attempt

NOTHING = Nothing()


@dataclass(frozen=True, slots=True)
class TrainerCall:
    """Whose request is answered."""

    attempt: Attempt
    key: str = ""
    """Of the request: one that is sent again has the same. "" = it comes once."""

    @property
    def experiment_id(self) -> int:
        return self.attempt.experiment_id

    @property
    def team_id(self) -> int:
        return self.attempt.experiment.team_id

    @property
    def config(self) -> ExperimentConfig:
        return self.attempt.experiment.settings


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
    answer: Callable[[TrainerCall, Any], Any]

    @property
    def is_report(self) -> bool:
        """Whether the trainer only tells something: it may arrive later."""
        return self.route.method == "POST" and self.route.answers is Nothing


def handles(route: Route[Asked, Answered], answer: Callable[[TrainerCall, Asked], Answered]) -> Handler:
    """The pair, typed: the function takes what the route asks and gives what it answers."""
    return Handler(route, answer)


def takes(route: Route[Asked, Nothing], take: Callable[[TrainerCall, Asked], None]) -> Handler:
    """The same of a report, which has no answer."""
    return Handler(route, take)
