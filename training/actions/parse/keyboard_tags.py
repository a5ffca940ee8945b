"""Dialect keyboard: the verbs of the Windows seed.

<action>sendkey ctrl-s</action>  <action>type hello</action>  <action>typeline hello</action>
<action>wait 2</action>  <done/>
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from training.actions.errors import ActionTextError
from training.actions.key_names import split_chord
from training.actions.parse.argument_values import Found, Points, seconds, typed_text
from training.contracts.types import Action, ActionKind

NAME = "keyboard"
Verb = Callable[[str, Points], Action]
_CLOSE = "</action>"
_OPEN = re.compile(r"<action>|<done\s*/>")


def start(text: str) -> int | None:
    """Where the first tag begins; None when there is none."""
    match = _OPEN.search(text)
    return match.start() if match else None


def parse(text: str, points: Points) -> Found:
    """The tags in `text`, one after another."""
    return parse_tags(text, points, VERBS)


def parse_tags(text: str, points: Points, verbs: dict[str, Verb]) -> Found:
    """The tags in `text`, whose verbs must be of `verbs`."""
    actions, words, place = [], [], 0
    for start, inside, end in _tags(text):
        actions.append(_action(inside, points, verbs))
        words.append(text[place:start])
        place = end
    if not actions:
        raise ActionTextError("<action> is not closed")
    return Found(tuple(actions), "".join([*words, text[place:]]).strip())


def _action(inside: str | None, points: Points, verbs: dict[str, Verb]) -> Action:
    if inside is None:
        return Action(kind=ActionKind.TERMINATE, status="success")
    name, _, rest = inside.lstrip().partition(" ")
    verb = verbs.get(name.strip())
    if verb is None:
        raise ActionTextError(f"unknown verb {name[:20]!r}; use {', '.join(verbs)}")
    return verb(rest, points)


def _tags(text: str) -> Iterator[tuple[int, str | None, int]]:
    """(start, what is inside, end) of each tag, None inside of <done/>; open ones are passed over.

    An end is looked for until there is none, and not again from every tag that is open.
    """
    place, is_closed = 0, True
    while opened := _OPEN.search(text, place):
        place = opened.end()
        if opened[0] != "<action>":
            yield opened.start(), None, place
        elif is_closed:
            closed = text.find(_CLOSE, place)
            is_closed = closed >= 0
            if is_closed:
                inside, place = text[place:closed], closed + len(_CLOSE)
                yield opened.start(), inside, place


def _sendkey(rest: str, points: Points) -> Action:
    return Action(kind=ActionKind.KEY, keys=split_chord(rest.strip(), "-"))


def _type(rest: str, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(rest))


def _typeline(rest: str, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(rest + "\n"))


def _wait(rest: str, points: Points) -> Action:
    try:
        duration = float(rest)
    except ValueError as error:
        raise ActionTextError("wait needs a number of seconds") from error
    return Action(kind=ActionKind.WAIT, seconds=seconds(duration))


VERBS: dict[str, Verb] = {"sendkey": _sendkey, "type": _type, "typeline": _typeline, "wait": _wait}
"""Whitelist: verb -> builder of its action from the words after it."""
