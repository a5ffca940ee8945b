"""Which streams there are, who may read them, and what they hold after a cursor."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Model

from webapp.accounts.access import is_member, may_read
from webapp.lib.request_values import row_id
from webapp.live.models import Event, Stream

SHARED_STREAMS = frozenset({"fleet", "queue"})
"""What every member of any team may read."""
PAGE = 200


Watch = Callable[[AbstractBaseUser, int], None]
"""Called with the one who requests the pictures of row PK."""

_owners: dict[str, type[Model]] = {}
_watches: dict[str, Watch] = {}


def register_owned(kind: str, model: type[Model], note_watching: Watch | None = None) -> None:
    """Streams `kind.PK` belong to row PK of `model`: members of its team may read them."""
    _owners[kind] = model
    if note_watching:
        _watches[kind] = note_watching


@dataclass(frozen=True)
class LiveEvent:
    """One event on its way to a browser."""

    seq: int
    type: str
    payload: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """What follows a cursor."""

    events: list[LiveEvent]
    last_seq: int
    """The stream's newest number when the page was read."""


def may_subscribe(user: AbstractBaseUser, stream: str) -> bool:
    """True when `user` may read `stream`; False for unknown names."""
    if stream in SHARED_STREAMS:
        return is_member(user)
    kind, _, number = stream.partition(".")
    pk = row_id(number)
    return kind in _owners and pk is not None and may_read(user, _owners[kind], pk)


def note_watching(user: AbstractBaseUser, stream: str) -> None:
    """Tell the audit log that `user`, who may read the stream, asks for its pictures."""
    kind, _, number = stream.partition(".")
    if (pk := row_id(number)) is not None and kind in _watches:
        _watches[kind](user, pk)


def allowed(user: AbstractBaseUser, streams: Collection[str]) -> set[str]:
    """Those of `streams` that `user` may still read."""
    return {stream for stream in streams if may_subscribe(user, stream)}


def read_after(stream: str, cursor: int) -> Page:
    """At most `PAGE` events after `cursor`, oldest first."""
    # The newest number first: an event between the two queries is then read, and not taken for pruned.
    newest = last_seqs([stream]).get(stream, 0)
    rows = Event.objects.filter(stream=stream, seq__gt=cursor).order_by("seq")[:PAGE]
    return Page([LiveEvent(row.seq, row.type, row.payload) for row in rows], newest)


def last_seqs(streams: Collection[str]) -> dict[str, int]:
    """stream -> newest number; streams without events are absent."""
    return dict(Stream.objects.filter(name__in=streams).values_list("name", "last_seq"))
