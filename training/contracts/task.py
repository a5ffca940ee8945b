"""A task; `training.contracts.types` hands it on with the other values that travel."""

import zoneinfo
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from training.contracts.milestone import Milestone
from training.contracts.wire import Wire

INFEASIBLE = "infeasible"
"""The func of a task that cannot be done."""


@cache
def known_zones() -> frozenset[str]:
    """Names of the IANA database, as far as this machine has it."""
    return frozenset(zoneinfo.available_timezones())


def _known(name: str) -> str:
    if name and known_zones() and name not in known_zones():
        raise ValueError(f'no time zone is named {name!r}; write an IANA name, such as "Europe/Berlin"')
    return name


TimeZone = Annotated[
    str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$"), AfterValidator(_known)
]
Locale = Annotated[str, StringConstraints(max_length=64, pattern=r"^([A-Za-z0-9_.@-]+)?$")]
"""Whether a desktop has it, its set-up says: locales come with the desktop's system."""


MAX_ID = 120
MAX_FAMILY = 40
"""Characters that tables keep."""


class Task(Wire):
    """One desktop problem in OSWorld's schema, plus what Deskhand adds."""

    task_id: str
    instruction: str
    family: str = ""
    """Name of the generator, e.g. "menu"; empty for imported tasks."""
    level: int = 1
    """Difficulty, 1 = easiest."""
    split: Literal["train", "heldout"] = "train"
    config: tuple[dict[str, Any], ...] = ()
    """OSWorld setup steps: [{"type": "launch", "parameters": {...}}, ...]."""
    evaluator: dict[str, Any] = Field(default_factory=dict)
    """OSWorld evaluator: {"func", "result", "expected", "options", "conj"}."""
    screen: tuple[int, int] = (512, 384)
    """Desktop width and height in pixels."""
    oracle: dict[str, Any] = Field(default_factory=dict)
    """What the family's oracle needs to solve it; never shown to the policy."""
    max_turns: int | None = None
    """Overrides the experiment's limit."""
    milestones: tuple[Milestone, ...] = Field(default=(), exclude_if=lambda found: not found)
    timezone: TimeZone = Field(default="", exclude_if=lambda name: not name)
    """IANA name of the desktop's time zone, e.g. "Asia/Kolkata"; "" = UTC."""
    locale: Locale = Field(default="", exclude_if=lambda name: not name)
    """Of the desktop's programs, e.g. "de_DE.UTF-8"; "" = C.UTF-8."""
    os: Literal["", "linux", "windows", "macos", "android"] = Field(
        default="", exclude_if=lambda found: not found
    )
    """The system that it is made for; "" = what its source, paths and programs say."""
    published: dict[str, Any] = Field(default_factory=dict, exclude_if=lambda found: not found)
    """What OSWorld says of it beside set-up and evaluator: proxy, fixed_ip, related_apps, ..."""


def as_list(value: Any) -> list[Any]:
    """OSWorld writes one thing or a list of things."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def column(evaluator: dict[str, Any], key: str, length: int) -> list[Any]:
    """`evaluator[key]` as one entry per func; a missing key is a column of None."""
    return as_list(evaluator[key]) if evaluator.get(key) is not None else [None] * length
