"""The closed shapes of what a host reports of itself: nothing else of its row can be written by a report."""

from datetime import datetime
from typing import Annotated, Required

from annotated_types import Ge, Le
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict  # pydantic cannot read typing's before Python 3.12

CLOSED = ConfigDict(extra="forbid")
Count = Annotated[int, Ge(0), Le(2**31 - 1)]
"""As an integer column holds it."""


@with_config(CLOSED)
class ReportedProvider(TypedDict, total=False):
    """Whether desktops of one kind can be had on the host."""

    provider: Required[str]
    usable: Required[bool]
    mode: str
    reasons: list[str]
    remedies: list[str]


@with_config(CLOSED)
class ReportedKind(TypedDict):
    """The pool of one kind of desktop."""

    provider: str
    width: Count
    height: Count
    leased: Count
    ready: Count
    coming: Count
    wanted: Count
    problem: str


@with_config(CLOSED)
class ReportedSnapshots(TypedDict, total=False):
    """What snapshots take of the host."""

    count: Count
    max_count: Count
    size_mb: float
    max_mb: float


@with_config(CLOSED)
class ReportedLeak(TypedDict, total=False):
    """Something of a desktop that no known desktop accounts for."""

    kind: Required[str]
    name: str
    detail: str


@with_config(CLOSED)
class HostValues(TypedDict, total=False):
    """Columns of `models.Host` that its desk host reports."""

    started_at: datetime
    max_desktops: Count
    cores: Count
    cpu_percent: float
    load: float
    memory_mb: float
    memory_used_mb: float
    disk_mb: float
    disk_free_mb: float
    swept: Count
    num_resets: Count
    num_failures: Count
    reset_p50_s: float
    reset_p99_s: float
    providers: list[ReportedProvider]
    pool: list[ReportedKind]
    snapshots: ReportedSnapshots
    leaks: list[ReportedLeak]


@with_config(CLOSED)
class ReportedGpu(TypedDict, total=False):
    """One GPU that a gpu worker sees."""

    index: Count
    uuid: str
    name: Required[str]
    memory_bytes: Required[Annotated[int, Ge(0), Le(2**53)]]
    free_bytes: Annotated[int, Ge(0), Le(2**53)]
