"""What a dialect is: how its text is read and written, and how its models see a task."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

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
class Shown:
    """One turn as a layout places it."""

    picture: int | None
    """Number of the turn whose screenshot it is (0-based); None outside of the window."""
    read: str = ""
    """Tree and terminal."""
    words: str = ""
    """What its completion says that it does."""
    completion: tuple[int, ...] = ()
    """Its tokens."""

    @property
    def seen(self) -> tuple[str | int, ...]:
        """Screenshot, then texts; empty for a turn of which nothing is left."""
        return tuple(part for part in (self.picture, self.read) if part not in (None, ""))


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    parts: tuple[str | int | tuple[int, ...], ...]
    """Words, screenshots by their turn's number, and tokens as they were sampled."""


Layout = Callable[[Callable[[str | None], str], Sequence[Shown]], list[Message]]
"""(the task's words with this list of actions, None = without a list; the turns, the current one last) -> the
messages after the system's."""


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
    layout: Layout | None = None
    """How its own agent orders words, screenshots and answers; None = as Qwen3-VL's does."""
    names_marks: bool = False
    """Whether tag_1 may stand where a point does, for the first numbered box on the picture."""
    is_tried: bool = False
    """Whether `prompt.dialect: auto` tries it."""
