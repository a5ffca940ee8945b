"""Operations of operators, newest first."""

from webapp.fleet.models import (
    Operation,
    OperationStatus,
    TargetKind,
)

OPERATIONS_SHOWN = 8


def recent_operations(*, target: str = "") -> list[Operation]:
    """The newest ones, of one desktop when named; one query."""
    rows = Operation.objects.order_by("-id")
    if target:
        rows = rows.filter(kind=TargetKind.DESKTOP, target=target)
    return list(rows[:OPERATIONS_SHOWN])


def open_operations(operations: list[Operation]) -> dict[str, str]:
    """Target -> verb of what is under way."""
    open_ones = (OperationStatus.ASKED, OperationStatus.RUNNING)
    return {o.target: o.verb for o in operations if o.status in open_ones}
