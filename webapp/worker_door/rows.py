"""The contract with workers: its functions, and how their arguments travel between hosts.

A report has no answer: it is delivered once and in order, later when the web is away. A question is answered
now. In the same process both are plain calls.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, get_type_hints

from django.db.models import Q, QuerySet
from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Attempt
from webapp.fleet.models import Worker
from webapp.trajectories.models import Trajectory

P = ParamSpec("P")
T = TypeVar("T")

_JSON = ConfigDict(
    ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants", extra="forbid"
)
_rows: dict[str, Row] = {}
caller: ContextVar[str] = ContextVar("caller", default="")
"""Name of the JoinedHost row whose call is being answered; "" = a worker of the installation's own."""
hears: ContextVar[Callable[[], None] | None] = ContextVar("hears", default=None)
"""Notes when and how that host was heard; None for a worker of this machine."""

NAMES = ("experiment", "group", "worker", "status")
"""Of a trajectory: whom its reports are told to. A turn needs no more of its forty columns."""
SCORED = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED)
OWNER = ("worker__host", "worker__is_joined")


class NotYours(Exception):
    """Raised when a joined host names something that another host works on."""


@dataclass(frozen=True, slots=True)
class Row:
    """One function of the contract."""

    name: str
    function: Callable[..., Any]
    is_report: bool
    is_patient: bool
    """Asked again until there is an answer, rather than failing."""
    is_of_turns: bool
    """Writes nothing but a trajectory and its turns: those that follow each other share a transaction."""
    roles: frozenset[str]
    """Of the joined hosts that may call it."""
    arguments: type[BaseModel]
    answer: TypeAdapter[Any]

    def write(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """A call's arguments as JSON."""
        return self.arguments.model_construct(**self._bound(args, kwargs)).model_dump_json().encode()

    def trajectory_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
        """The trajectory that a call is about."""
        return self._bound(args, kwargs).get("trajectory_id")

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return inspect.signature(self.function).bind(*args, **kwargs).arguments

    def require_role(self, roles: Iterable[str]) -> None:
        """Raise NotYours unless a joined host of these roles may call it."""
        if self.roles.isdisjoint(roles):
            raise NotYours(f"{self.name}: only for hosts that joined as {' or '.join(sorted(self.roles))}")

    def call(self, body: bytes) -> Any:
        """Do what the JSON asks. Raises pydantic's ValidationError."""
        values = self.arguments.model_validate_json(body)
        return self.function(**{name: getattr(values, name) for name in self.arguments.model_fields})


@dataclass(frozen=True, slots=True)
class CallsOf:
    """Decorators that make functions rows which joined hosts of these roles may call."""

    roles: frozenset[str]

    def question(self, function: Callable[P, T]) -> Callable[P, T]:
        """A row whose caller can go on without the answer, or asks again by itself."""
        return self._add(function, is_report=False, is_patient=False)

    def patient_question(self, function: Callable[P, T]) -> Callable[P, T]:
        """A row whose caller cannot go on without the answer."""
        return self._add(function, is_report=False, is_patient=True)

    def report(self, function: Callable[P, None]) -> Callable[P, None]:
        return self._add(function, is_report=True, is_patient=True)

    def report_of_turns(self, function: Callable[P, None]) -> Callable[P, None]:
        """A row that locks nothing that another one, of the same trajectory, might wait for."""
        return self._add(function, is_report=True, is_patient=True, is_of_turns=True)

    def _add(
        self, function: Callable[P, T], *, is_report: bool, is_patient: bool, is_of_turns: bool = False
    ) -> Callable[P, T]:
        hints = get_type_hints(function, include_extras=True)
        fields = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in inspect.signature(function).parameters.items()
        }
        name = function.__name__
        assert name not in _rows, f"two rows are called {name}"
        arguments = create_model(name, __config__=_JSON, **fields)  # type: ignore[call-overload]
        _rows[name] = Row(
            name=name,
            function=function,
            is_report=is_report,
            is_patient=is_patient,
            is_of_turns=is_of_turns,
            roles=self.roles,
            arguments=arguments,
            answer=_answer_of(hints["return"]),
        )
        return function


env_host = CallsOf(frozenset({"env"}))
gpu_host = CallsOf(frozenset({"gpu"}))
any_host = CallsOf(env_host.roles | gpu_host.roles)


def _answer_of(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=_JSON) if kind is bytes else TypeAdapter(kind)


def row_named(name: str) -> Row | None:
    return _rows.get(name)


def all_rows() -> list[Row]:
    """Of the modules that were imported; `contract.py` imports all of them."""
    return list(_rows.values())


def require_host(name: str) -> None:
    """Raise NotYours when a joined host speaks for another one."""
    if (host := caller.get()) and host != name:
        raise NotYours(f"{host} speaks for {name}")


def require_own_name(worker: str, queue: str) -> None:
    """Raise NotYours unless a joined host's new worker has a name of its own: QUEUE, number @ its name."""
    if (host := caller.get()) and not re.fullmatch(rf"{queue}[0-9]{{1,3}}@{re.escape(host)}", worker):
        raise NotYours(
            f"worker {worker}: those of {host} in queue {queue} are called {queue}1@{host} and so on"
        )


def own_workers() -> QuerySet[Worker]:
    """The rows of the calling joined host's workers."""
    return Worker.objects.filter(host=caller.get(), is_joined=True)


def works_for(*team_ids: int) -> bool:
    """Whether the caller works or has worked for one of the teams; workers of this machine may for all."""
    if not caller.get():
        return True
    if Trajectory.objects.filter(worker__in=own_workers(), team_id__in=team_ids).exists():
        return True
    workers = own_workers().filter(queue="gpu").values("name")
    running = Attempt.objects.filter(ended_at=None, experiment__team_id__in=team_ids)
    return running.filter(Q(worker_name__in=workers) | Q(gang__worker_name__in=workers)).exists()


def require_team(*team_ids: int) -> None:
    """Raise NotYours unless a joined host has worked for one of the teams."""
    if not works_for(*team_ids):
        raise NotYours(f"{caller.get()} has run nothing of team {', '.join(map(str, team_ids))}")


def own_trajectory(trajectory_id: int) -> Trajectory:
    """The row with its NAMES only: the rest is read when it is asked for.

    Raises NotYours when the caller's workers do not run it, Trajectory.DoesNotExist.
    """
    rows, host = Trajectory.objects.only(*NAMES), caller.get()
    if not host:
        return rows.get(pk=trajectory_id)
    row = rows.select_related("worker").only(*NAMES, *OWNER).get(pk=trajectory_id)
    if row.worker is None or row.worker.host != host or not row.worker.is_joined:
        raise NotYours(f"trajectory {trajectory_id} is not run by {host}")
    return row


def own_open_trajectory(trajectory_id: int) -> Trajectory:
    """As `own_trajectory`. Raises NotYours for a joined host's that has its score, too: it is what it was."""
    row = own_trajectory(trajectory_id)
    if caller.get() and row.status in SCORED:
        raise NotYours(f"trajectory {trajectory_id} has been scored")
    return row


def require_own(trajectory_id: int) -> None:
    """Raise NotYours when a joined host names a trajectory that its workers do not run."""
    if caller.get():
        own_trajectory(trajectory_id)


def require_own_open(trajectory_id: int) -> None:
    """Raise NotYours as `own_open_trajectory`, and ask nothing for the installation's own workers."""
    if caller.get():
        own_open_trajectory(trajectory_id)


def run_by_caller(rows: QuerySet[Trajectory]) -> QuerySet[Trajectory]:
    """Those that the calling joined host's workers run; all of them for the installation's own."""
    return rows.filter(worker__in=own_workers()) if caller.get() else rows


def own_of(trajectory_ids: list[int]) -> list[int]:
    """Those that the caller's workers run."""
    if not caller.get():
        return trajectory_ids
    return list(run_by_caller(Trajectory.objects.filter(pk__in=trajectory_ids)).values_list("pk", flat=True))


def own_attempt(attempt_id: int, *, or_of_gang: bool = False) -> Attempt:
    """The row with its experiment and team; `or_of_gang`: also for the other hosts of its gang.

    Raises NotYours when a joined host's worker does not hold it, Attempt.DoesNotExist.
    """
    row = Attempt.objects.select_related("experiment__team").get(pk=attempt_id)
    members = row.gang.values_list("worker_name", flat=True) if or_of_gang and caller.get() else []
    require_worker(row.worker_name, *members)
    return row


def require_worker(*names: str) -> None:
    """Raise NotYours unless one of these is a worker of the joined host that asks."""
    host = caller.get()
    if host and not own_workers().filter(name__in=names).exists():
        raise NotYours(f"{', '.join(names)}: no worker of {host}")
