"""/experiments/ID/alarms, logs, gpus, config: what the experiment page shows beside metrics."""

from datetime import UTC, datetime
from typing import Any, Literal

from django.http import Http404
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema

from training.contracts.config import to_yaml
from webapp.accounts.access import MemberRequest
from webapp.accounts.models import Role
from webapp.analysis.series.gpu_use import gpu_history
from webapp.experiments.access import get_experiment
from webapp.experiments.log_files import (
    Chunk,
    first_error,
    log_files,
    log_path,
    read_chunk,
)
from webapp.experiments.services.alarms import acknowledge_alarm
from webapp.lib.request_values import MAX_WHOLE

router = Router(tags=["experiments"])


class AlarmOut(Schema):
    """A guard that fired."""

    name: str
    status: str
    severity: str
    step: int
    """At which it fired last."""
    since_step: int
    value: float
    limit: float
    message: str
    remedy: str
    num_times: int
    acknowledged_by: str | None = Field(None, alias="acknowledged_by.username")
    at: datetime


class LogFileOut(Schema):
    """A log file of an experiment."""

    name: str
    num_bytes: int
    modified_at: datetime


class LogLine(Schema):
    """One line."""

    offset: int
    """Byte at which it begins."""
    level: str
    """error, warning, info or debug."""
    text: str


class LogChunk(Schema):
    """Whole lines of a file."""

    lines: list[LogLine]
    start: int
    end: int
    """`after` of the next chunk."""
    num_bytes: int
    """Of the file, now."""
    found: bool = True
    """False when the file holds no error up to `end`."""
    is_searched: bool = True
    """False when a search for the first error has to go on from `end`."""


class ConfigText(Schema):
    """A config as text."""

    yaml: str


@router.get("/{int:pk}/config", response=ConfigText, operation_id="show_config")
def show_config(request: MemberRequest, pk: int) -> Any:
    """The whole config as YAML, as `launch_experiment` takes it."""
    return {"yaml": to_yaml(get_experiment(request, pk).settings)}


@router.get("/{int:pk}/alarms", response=list[AlarmOut], operation_id="list_alarms")
def list_alarms(request: MemberRequest, pk: int) -> Any:
    """Every guard that ever fired in it."""
    return list(get_experiment(request, pk).alarms.select_related("acknowledged_by").order_by("pk"))


@router.post("/{int:pk}/alarms/{name}/acknowledge", response=AlarmOut, operation_id="acknowledge_alarm")
def acknowledge(request: MemberRequest, pk: int, name: str) -> Any:
    """It stops shouting until it was cleared and fires again."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    acknowledge_alarm(experiment=experiment, name=name, user=request.user)
    return get_object_or_404(experiment.alarms.select_related("acknowledged_by"), name=name)


@router.get("/{int:pk}/gpus", response=dict[str, Any], operation_id="show_gpus")
def show_gpus(request: MemberRequest, pk: int) -> Any:
    """Utilisation and memory of GPUs and processes over time, as the page's charts have them."""
    return gpu_history(get_experiment(request, pk))


@router.get("/{int:pk}/logs", response=list[LogFileOut], operation_id="list_logs")
def list_logs(request: MemberRequest, pk: int) -> Any:
    """Log files of its attempts, the newest attempt first."""
    return [
        {
            "name": file.name,
            "num_bytes": file.num_bytes,
            "modified_at": datetime.fromtimestamp(file.modified, tz=UTC),
        }
        for file in log_files(get_experiment(request, pk).pk)
    ]


@router.get("/{int:pk}/logs/{name}", response=LogChunk, operation_id="read_log")
def read_log(
    request: MemberRequest,
    pk: int,
    name: str,
    after: int | None = Query(None, ge=0, le=MAX_WHOLE),
    at: Literal["", "first-error"] = "",
) -> Any:
    """Lines of one file: its end, from byte `after` on, or around the first error from there on."""
    path = log_path(get_experiment(request, pk).pk, name)
    if path is None:
        raise Http404("No such log file.")
    if not at:
        return _answer(read_chunk(path, after))
    search = first_error(path, after or 0)
    if search.start is not None:
        return _answer(read_chunk(path, search.start))
    nothing = Chunk([], search.end, search.end, path.stat().st_size)
    return _answer(nothing) | {"found": False, "is_searched": search.is_whole}


def _answer(chunk: Chunk) -> dict[str, Any]:
    lines = [{"offset": offset, "level": level, "text": text} for offset, level, text in chunk.lines]
    return {"lines": lines, "start": chunk.start, "end": chunk.end, "num_bytes": chunk.num_bytes}
