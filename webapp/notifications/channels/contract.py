"""What every channel offers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webapp.accounts.models import Team


class NotDelivered(Exception):
    """Raised when a try failed; the message is shown in the log, so it holds neither secrets nor answers.

    `is_permanent`: no repetition would change it.
    """

    def __init__(self, problem: str, *, is_permanent: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(problem)
        self.is_permanent = is_permanent
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent, without how."""

    id: str
    """The same in every try."""
    kind: str
    title: str
    text: str
    url: str
    """Of the page that shows it."""
    team_id: int
    team: str
    experiment_id: int | None
    at: datetime
    picture: bytes | None
    """A strip of screenshots as a JPEG."""
    picture_url: str
    """Shows the same without a sign-in, for 30 days; "" without one."""


class Rule(Protocol):
    """The columns of a rule that say where it points."""

    @property
    def team(self) -> Team: ...
    @property
    def target(self) -> str: ...
    @property
    def secret(self) -> str: ...


Check = Callable[[Team, str, str], None]
"""Of (team, target, secret). Raises BadValue naming the field, unless the team may send there."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One row; its name in the registry is what rules store."""

    label: str
    send: Callable[[Rule, Message], None]
    """Returns when the receiver has it. Raises NotDelivered."""
    check: Check
    hint: Callable[[], str]
    """What its target is, for people who set a rule."""
    is_url: bool = False
    """Its target may be a secret by itself: of it only the host is shown."""
    signs: bool = False
    """Its secret is the key of a signature; of others it is a part of the URL."""
