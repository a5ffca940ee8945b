"""Cancelling many experiments at once, and taking it back for those that had not begun."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.core import signing

from webapp.experiments.models import Experiment
from webapp.experiments.services.experiments import WAITING, request_cancel, undo_cancel

SALT = "cancel-undo"
UNDO_FOR_S = 3600


@dataclass
class Cancelled:
    """What became of each; `former` is what an undo needs."""

    done: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    """Id -> its status, in which nothing is cancelled."""
    former: dict[int, str] = field(default_factory=dict)
    """Id -> how it waited."""

    @property
    def undo(self) -> str:
        """Signed, for `former_of`; "" when none of them waited."""
        return signing.dumps(self.former, salt=SALT, compress=True) if self.former else ""


def cancel_each(*, experiments: Iterable[Experiment], user: User) -> Cancelled:
    """Those that wait at once, those that run at their next safe point."""
    found = Cancelled()
    for row in experiments:
        before = row.status
        if not request_cancel(experiment=row, user=user):
            found.refused[row.pk] = before
            continue
        found.done.append(row.pk)
        if before in WAITING:
            found.former[row.pk] = before
    return found


def former_of(undo: str) -> dict[int, str]:
    """What `Cancelled.undo` was made of, for an hour. Raises signing.BadSignature for anything else."""
    former = signing.loads(undo, salt=SALT, max_age=UNDO_FOR_S)
    return {int(pk): status for pk, status in former.items()}


def undo_cancels(*, experiments: Iterable[Experiment], former: dict[int, str], user: User) -> list[int]:
    """Let those that are still cancelled wait again; returns which."""
    return [row.pk for row in experiments if undo_cancel(experiment=row, former=former[row.pk], user=user)]
