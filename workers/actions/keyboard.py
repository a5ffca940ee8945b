"""Dialect keyboard: the verbs of the Windows seed.

<action>sendkey ctrl-s</action>  <action>type hello</action>  <action>typeline hello</action>
<action>wait 2</action>  <done/>
"""

from __future__ import annotations

import re

from training.types import Action, ActionKind
from workers.actions.base import MORE_THAN_ONE, ActionTextError, Found, Points, seconds, typed_text
from workers.actions.keys import split_chord

NAME = "keyboard"
_TAG = re.compile(r"<action>(.*?)</action>|<done\s*/>", re.DOTALL)


_OPEN = re.compile(r"<action>|<done\s*/>")


def start(text: str) -> int | None:
    """Where the first tag begins; None when there is none."""
    match = _OPEN.search(text)
    return match.start() if match else None


def parse(text: str, points: Points) -> Found:
    """The one tag in `text`."""
    tags = list(_TAG.finditer(text))
    if not tags:
        raise ActionTextError("<action> is not closed")
    if len(tags) > 1:
        raise ActionTextError(MORE_THAN_ONE)
    tag = tags[0]
    thought = (text[: tag.start()] + text[tag.end() :]).strip()
    if tag[1] is None:
        return Found(Action(kind=ActionKind.TERMINATE, status="success"), thought)
    return Found(_command(tag[1].lstrip()), thought)


def _command(command: str) -> Action:
    verb, _, rest = command.partition(" ")
    match verb:
        case "sendkey":
            return Action(kind=ActionKind.KEY, keys=split_chord(rest.strip(), "-"))
        case "type":
            return Action(kind=ActionKind.TYPE, text=typed_text(rest))
        case "typeline":
            return Action(kind=ActionKind.TYPE, text=typed_text(rest + "\n"))
        case "wait":
            try:
                duration = float(rest)
            except ValueError as error:
                raise ActionTextError("wait needs a number of seconds") from error
            return Action(kind=ActionKind.WAIT, seconds=seconds(duration))
    raise ActionTextError(f"unknown verb {verb[:20]!r}; use sendkey, type, typeline or wait")
