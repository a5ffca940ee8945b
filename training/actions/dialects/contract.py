"""What a dialect is: how its text is read and written, and how its models see a task."""

from collections.abc import Callable
from dataclasses import dataclass

from training.actions.parse.argument_values import Found, Points, Start
from training.actions.write.json_call import WritePoint
from training.contracts.config import CoordinateSpace
from training.contracts.types import Action

MAX_ACTION_WORDS = 300
"""Characters of a turn in the list of previous actions."""


def action_line(completion: str) -> str:
    """What a completion says that it does: its "Action:" line, else its first one."""
    lines = [line.strip() for line in completion.splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("action:")]
    words = named[0].split(":", 1)[1] if named else (lines[0] if lines else "nothing")
    return words.strip()[:MAX_ACTION_WORDS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One way to write actions."""

    name: str
    """As `prompt.dialect` names it."""
    of: str
    """Whose models or tools write it."""
    start: Callable[[str], Start | None]
    """Where the first action of a text begins; None when the text is not in this dialect."""
    parse: Callable[[str, Points], Found]
    """The actions of a text. Raises ActionTextError."""
    write: Callable[[Action, WritePoint], str]
    """The text that says an action. Raises ValueError when there is none: no part is left out."""
    prompt: str
    """The system message of our own that explains it, with {coordinates}."""
    point_form: str = "[x, y]"
    """A point, in the words of that message."""
    space: CoordinateSpace = CoordinateSpace.RELATIVE
    """What the numbers of its published models mean."""
    factor: int = 32
    """Of the resized image that these models see: its sides are multiples of it."""
    words: Callable[[str], str] = action_line
    """What a completion says that it does, for the list of previous actions."""
    names_marks: bool = False
    """Whether tag_1 may stand where a point does, for the first numbered box on the picture."""
    is_tried: bool = False
    """Whether `prompt.dialect: auto` tries it."""
