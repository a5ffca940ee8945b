"""Actions as tags with a verb: <action>sendkey ctrl-s</action>, <done/>."""

import re
from collections.abc import Callable, Iterator

from training.actions.errors import ActionTextError
from training.actions.key_names import chord, key_list, split_chord
from training.actions.parse.argument_values import Found, Points, Start, seconds, typed_text
from training.actions.parse.thoughts import answer_start
from training.contracts.action import Action, ActionKind

Verb = Callable[[str, Points], Action]
CLOSE = "</action>"
QUOTES = ("'", '"')
DEFAULT_WAIT_S = 1.0
_OPEN = re.compile(r"<action>|<done\s*+/?>")


def start(text: str) -> Start | None:
    """Where the first tag begins; None when there is none."""
    match = _OPEN.search(text, answer_start(text))
    return Start(False, match.start()) if match else None


def parse(text: str, points: Points) -> Found:
    """The tags of the keyboard in `text`."""
    return parse_tags(text, points, VERBS)


def parse_tags(text: str, points: Points, verbs: dict[str, Verb]) -> Found:
    """The tags in `text`, whose verbs must be of `verbs`."""
    actions: list[Action] = []
    place = answer_start(text)
    words = [text[:place]]
    for begin, inside, end in _tags(text, place):
        actions.append(_action(inside, points, verbs))
        words.append(text[place:begin])
        place = end
    if not actions:
        raise ActionTextError("<action> is not closed")
    return Found(tuple(actions), "".join([*words, text[place:]]).strip())


def _action(inside: str | None, points: Points, verbs: dict[str, Verb]) -> Action:
    if inside is None:
        return Action(kind=ActionKind.TERMINATE, status="success")
    name, _, rest = inside.lstrip().partition(" ")
    verb = verbs.get(name.strip().lower())
    if verb is None:
        raise ActionTextError(f"unknown verb {name[:20]!r}; use {', '.join(verbs)}")
    return verb(rest, points)


def _tags(text: str, place: int) -> Iterator[tuple[int, str | None, int]]:
    """(start, what is inside, end) of each tag, None inside of <done/>; open ones are passed over.

    An end is looked for until there is none, and not again from every tag that is open.
    """
    is_closed = True
    while opened := _OPEN.search(text, place):
        place = opened.end()
        if opened[0] != "<action>":
            yield opened.start(), None, place
        elif is_closed:
            closed = text.find(CLOSE, place)
            is_closed = closed >= 0
            if is_closed:
                inside, place = text[place:closed], closed + len(CLOSE)
                yield opened.start(), inside, place


def _sendkey(rest: str, points: Points) -> Action:
    """Keys joined by "-", or by blanks or "+" as models write them, too."""
    text = rest.strip()
    keys = split_chord(text, "-") if not re.search(r"[\s+]", text) else chord(key_list(text))
    return Action(kind=ActionKind.KEY, keys=keys)


def _words(rest: str) -> str:
    """What a verb types, without line ends before the closing tag and a pair of quotes around it."""
    text = rest.rstrip("\r\n")
    is_quoted = len(text) > 1 and text[0] in QUOTES and text[-1] == text[0]
    return text[1:-1] if is_quoted else text


def _type(rest: str, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(_words(rest)))


def _typeline(rest: str, points: Points) -> Action:
    return Action(kind=ActionKind.TYPE, text=typed_text(_words(rest) + "\n"))


def _wait(rest: str, points: Points) -> Action:
    try:
        duration = float(rest.strip() or DEFAULT_WAIT_S)
    except ValueError as error:
        raise ActionTextError("wait needs a number of seconds") from error
    return Action(kind=ActionKind.WAIT, seconds=seconds(duration))


VERBS: dict[str, Verb] = {"sendkey": _sendkey, "type": _type, "typeline": _typeline, "wait": _wait}
"""Whitelist: verb -> builder of its action from the words after it."""
