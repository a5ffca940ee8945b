"""One task as JSON in OSWorld's schema <-> `Task`.

A task without a split gets one by a hash of its id, so that the same task falls on the same side in every
import; the two splits never share a task.
"""

import hashlib
from typing import Any, Literal

from pydantic import ValidationError

from training.contracts.plain_errors import in_plain_words
from training.contracts.types import Task

OSWORLD_SCREEN = (1920, 1080)
Split = Literal["train", "heldout"]
OWN_KEYS = ("level", "oracle", "max_turns", "milestones", "os", "timezone", "locale")
"""Of ours, with a default."""
PUBLISHED_KEYS = (
    *("snapshot", "source", "trajectory", "related_apps", "proxy", "fixed_ip"),
    "possibility_of_env_change",
)
"""Keys that describe a task in OSWorld; they are kept as they came."""


class LoadError(ValueError):
    """Raised when a source or a task cannot be read; the message names the file and the field."""

    def __init__(self, message: str, problems: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems
        """(dotted path within the task, what is wrong) of each, where a task's own values are refused."""


def task_from_osworld(
    values: Any,
    *,
    where: str,
    family: str = "",
    heldout_fraction: float = 0.2,
    screen: tuple[int, int] = OSWORLD_SCREEN,
) -> Task:
    """One OSWorld task JSON, which may also hold our own family, split, screen and `OWN_KEYS`.

    Other keys are left out. Raises LoadError.
    """
    if not isinstance(values, dict):
        raise _refused(where, ("", "a task must be a JSON object"))
    task_id = values.get("id") or values.get("task_id")
    if not task_id:
        raise _refused(where, ("id", "is missing"))
    for key, value in (("id", task_id), ("family", values.get("family") or "")):
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise _refused(where, (key, "must be a text"))
    if not isinstance(values.get("instruction"), str):
        raise _refused(where, ("instruction", "is missing"))
    if not values["instruction"].strip():
        raise _refused(where, ("instruction", "is empty"))
    own = {key: values[key] for key in OWN_KEYS if key in values}
    try:
        return Task(
            task_id=str(task_id),
            instruction=values["instruction"],
            family=str(values.get("family") or family),
            split=values.get("split") or split_of(str(task_id), heldout_fraction),
            config=tuple(values.get("config") or ()),
            evaluator=values.get("evaluator") or {},
            screen=tuple(values.get("screen") or screen),
            published={key: values[key] for key in PUBLISHED_KEYS if key in values},
            **own,
        )
    except ValidationError as error:
        found = (
            (".".join(map(str, item["loc"])).replace("task_id", "id"), in_plain_words(item["msg"]))
            for item in error.errors()
        )
        raise _refused(where, *found) from error
    except TypeError as error:  # config or screen is no list
        raise LoadError(f"{where}: {error}", (("", str(error)),)) from error


def _refused(where: str, *problems: tuple[str, str]) -> LoadError:
    path, text = problems[0]
    gap = "" if not path else f"{path} " if text.startswith(("is ", "must ")) else f"{path}: "
    return LoadError(f"{where}: {gap}{text}", problems)


def split_of(task_id: str, heldout_fraction: float) -> Split:
    """Side of a task by its id alone."""
    digest = hashlib.sha256(task_id.encode()).digest()
    return "heldout" if int.from_bytes(digest[:4], "big") < heldout_fraction * 2**32 else "train"


def to_osworld(task: Task) -> dict[str, Any]:
    """The inverse of `task_from_osworld`: a file that another import reads back to the same task."""
    values = task.model_dump(mode="json")
    return {"id": values.pop("task_id"), **values.pop("published", {}), **values}
