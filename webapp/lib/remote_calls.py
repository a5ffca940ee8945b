"""Calls of workers: functions of the server that they call in its process, or over HTTPS from a joined host.

A report has no answer: it is delivered once and in order, later when the web is away. A request is answered
now. Each is declared where it is written, by a decorator; how it travels follows from its signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

P = ParamSpec("P")
T = TypeVar("T")

_JSON = ConfigDict(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants", extra="forbid"
)
_calls: dict[str, RemoteCall] = {}
caller: ContextVar[str] = ContextVar("caller", default="")
"""Name of the JoinedHost row whose call is being answered; "" = a worker of the installation's own."""
served_team: ContextVar[int | None] = ContextVar("served_team", default=None)
"""The only team that this host works for; None = all."""


class NotYours(Exception):
    """Raised when a joined host names something that another host works on."""


class Owned(Enum):
    """What an argument names; `worker_door/ownership.py` checks that it is the calling joined host's."""

    HOST = auto()
    WORKER = auto()
    TRAJECTORY = auto()
    OPEN_TRAJECTORY = auto()
    CONTROL = auto()
    OPERATION = auto()
    ATTEMPT = auto()
    GANG_ATTEMPT = auto()
    CHECKPOINT = auto()
    EXPORT = auto()
    WAITING_EXPORT = auto()
    TEAM_TRAJECTORY = auto()
    TEAM_EXPERIMENT = auto()
    TEAM_ATTEMPT = auto()


OwnHost = Annotated[str, Owned.HOST]
OwnWorker = Annotated[str, Owned.WORKER]
OwnTrajectory = Annotated[int, Owned.TRAJECTORY]
OwnOpenTrajectory = Annotated[int, Owned.OPEN_TRAJECTORY]
"""Without a score: what a joined host reports of another is refused, since it is what it was."""
OwnControl = Annotated[int, Owned.CONTROL]
OwnOperation = Annotated[int, Owned.OPERATION]
OwnAttempt = Annotated[int, Owned.ATTEMPT]
GangAttempt = Annotated[int, Owned.GANG_ATTEMPT]
"""Also of the other hosts of its gang."""
OwnCheckpoint = Annotated[int, Owned.CHECKPOINT]
OwnExport = Annotated[int, Owned.EXPORT]
WaitingExportId = Annotated[int, Owned.WAITING_EXPORT]
"""Of a checkpoint that the host wrote; no host has the export yet."""
TeamTrajectory = Annotated[int, Owned.TEAM_TRAJECTORY]
"""Of a team that the host works for; the call itself finds whether the host may have it."""
TeamExperiment = Annotated[int, Owned.TEAM_EXPERIMENT]
TeamAttempt = Annotated[int, Owned.TEAM_ATTEMPT]


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """One function that workers call."""

    name: str
    function: Callable[..., Any]
    is_report: bool
    is_patient: bool
    """Made again until there is an answer, rather than failing."""
    shares_transaction: bool
    """Writes nothing but a trajectory and its turns: those that follow each other share a transaction."""
    roles: frozenset[str]
    """Of the joined hosts that may make it."""
    owned: dict[str, Owned]
    """Argument -> what it names."""
    signature: inspect.Signature
    arguments: type[BaseModel]
    answer: TypeAdapter[Any]

    def as_sent(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Its arguments by name, and as the JSON that a joined host sends."""
        arguments = self.signature.bind(*args, **kwargs).arguments
        return arguments, self.arguments.model_construct(**arguments).model_dump_json()

    def require_role(self, roles: Iterable[str]) -> None:
        """Raise NotYours unless a joined host of these roles may make it."""
        if self.roles.isdisjoint(roles):
            raise NotYours(f"{self.name}: only for hosts that joined as {' or '.join(sorted(self.roles))}")


@dataclass(frozen=True, slots=True)
class CallsOf:
    """Decorators that make functions calls of joined hosts of these roles."""

    roles: frozenset[str]

    def request(self, function: Callable[P, T]) -> Callable[P, T]:
        """Its caller can go on without the answer, or asks again by itself."""
        return self._add(function, is_report=False, is_patient=False)

    def patient_request(self, function: Callable[P, T]) -> Callable[P, T]:
        """Its caller cannot go on without the answer."""
        return self._add(function, is_report=False, is_patient=True)

    def report(self, function: Callable[P, None]) -> Callable[P, None]:
        return self._add(function, is_report=True, is_patient=True)

    def report_of_turns(self, function: Callable[P, None]) -> Callable[P, None]:
        """A report that locks nothing that another one, of the same trajectory, might wait for."""
        return self._add(function, is_report=True, is_patient=True, shares_transaction=True)

    def _add(
        self, function: Callable[P, T], *, is_report: bool, is_patient: bool, shares_transaction: bool = False
    ) -> Callable[P, T]:
        name, signature = function.__name__, inspect.signature(function)
        assert name not in _calls, f"two calls are named {name}"
        hints = get_type_hints(function, include_extras=True)
        fields = {
            key: (hints[key], ... if parameter.default is parameter.empty else parameter.default)
            for key, parameter in signature.parameters.items()
        }
        _calls[name] = RemoteCall(
            name=name,
            function=function,
            is_report=is_report,
            is_patient=is_patient,
            shares_transaction=shares_transaction,
            roles=self.roles,
            owned={key: kind for key in fields if (kind := _owned(hints[key]))},
            signature=signature,
            arguments=create_model(name, __config__=_JSON, **fields),  # type: ignore[call-overload]
            answer=_answer_of(hints["return"]),
        )
        return function


env_host = CallsOf(frozenset({"env"}))
gpu_host = CallsOf(frozenset({"gpu"}))
any_host = CallsOf(env_host.roles | gpu_host.roles)


def _owned(hint: Any) -> Owned | None:
    return next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Owned)), None)


def _answer_of(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=_JSON) if kind is bytes else TypeAdapter(kind)


def call_named(name: str) -> RemoteCall | None:
    return _calls.get(name)


def call_of(function: Callable[..., Any]) -> RemoteCall:
    call = _calls[function.__name__]
    assert call.function is function, f"{function} is no call of workers"
    return call


def all_calls() -> list[RemoteCall]:
    """Of the modules that were imported; `worker_door/joined_hosts/contract.py` imports all of them."""
    return list(_calls.values())
