"""Which HTML travels with which event: the same template partial as on first load.

An application registers in its module `live_partials.py` (loaded at start-up):

    register("group.updated", lambda payload, user: render_group_row(payload["group_id"], user))

When a browser is behind and gets several events of one type and key at once, all are sent, and only the
newest carries HTML: the partial is drawn from the tables as they are now, so the others would be the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.contrib.auth.models import AbstractBaseUser

Payload = dict[str, object]
Render = Callable[[Payload, AbstractBaseUser], str]
Key = Callable[[Payload], object]


@dataclass(frozen=True)
class LiveEvent:
    """One event on its way to a browser."""

    seq: int
    type: str
    payload: Payload = field(default_factory=dict)


@dataclass(frozen=True)
class Partial:
    """How an event type is drawn, and what makes two events draw the same thing."""

    render: Render
    key: Key


_partials: dict[str, Partial] = {}


def whole_payload(payload: Payload) -> object:
    """The default key: no two different payloads replace each other."""
    return repr(sorted(payload.items()))


def register(event_type: str, render: Render, *, key: Key = whole_payload) -> None:
    """Attach `render(payload, user) -> html` to `event_type`; "" sends no HTML."""
    _partials[event_type] = Partial(render, key)


def render_events(events: Iterable[LiveEvent], user: AbstractBaseUser) -> dict[int, str]:
    """seq -> HTML for those of `events` that have a partial, the newest of each key only."""
    newest: dict[tuple[str, object], LiveEvent] = {}
    for event in events:
        partial = _partials.get(event.type)
        if partial:
            newest[event.type, partial.key(event.payload)] = event
    drawn = {event.seq: _partials[event.type].render(event.payload, user) for event in newest.values()}
    return {seq: html for seq, html in drawn.items() if html}


def has_partial(events: Iterable[LiveEvent]) -> bool:
    """True when any of `events` needs drawing (which costs a thread and queries)."""
    return any(event.type in _partials for event in events)
