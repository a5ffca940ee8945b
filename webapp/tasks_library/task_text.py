"""A task as people write it: JSON text -> the task, and what is wrong with it at which line."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from training.contracts.types import Task
from training.tasks.supported_by.deskhand import task_problems
from training.tasks.task_json import OWN_KEYS, PUBLISHED_KEYS, LoadError, task_from_osworld, to_osworld
from training.tasks.unusable_values import unusable
from webapp.lib.request_values import BadValue, json_object
from webapp.lib.yaml_keys import lines_of

MAX_CHARS = 200_000
MAX_DEPTH = 12
KEPT = {
    *("id", "task_id", "instruction", "family", "split", "config", "evaluator", "screen"),
    *OWN_KEYS,
    *PUBLISHED_KEYS,
}
PLACE = re.compile(r"(config|evaluator|oracle|milestones)[\w.\[\]]*")
EVALUATOR_PART = re.compile(r"evaluator\[(\d+)\](?:\.(\w+))?")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to say of a text."""

    text: str
    path: str = ""
    """Dotted; "" = of the whole."""
    line: int | None = None
    is_refusal: bool = True
    """Off: the task is kept, and Deskhand's own desktops cannot run it, or a key is left out."""


@dataclass(slots=True)
class Reading:
    """What a text is; a task only without refusals."""

    task: Task | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        return self.task is None or any(problem.is_refusal for problem in self.problems)


def text_of(spec: dict[str, Any]) -> str:
    """A stored task as the JSON that people edit."""
    return json.dumps(to_osworld(Task.model_validate(spec)), indent=2, ensure_ascii=False)


def text_to_compare(spec: dict[str, Any]) -> str:
    """The same with sorted keys: PostgreSQL does not keep the order in which they were written."""
    return json.dumps(to_osworld(Task.model_validate(spec)), indent=2, ensure_ascii=False, sort_keys=True)


def read_task(text: str) -> Reading:
    """The task that `text` says, with every problem of it at its line."""
    if len(text) > MAX_CHARS:
        return Reading(problems=[Problem(f"longer than {MAX_CHARS} characters")])
    try:
        values = json_object(text, "")
    except BadValue as error:
        found, path = re.search(r"line (\d+) column", error.problem), error.field.lstrip(".")
        return Reading(problems=[Problem(error.problem, path, int(found[1]) if found else None)])
    reading = Reading()
    lines = _Lines(text)
    for path, message, is_refusal in _problems(values, reading):
        reading.problems.append(Problem(message, path, lines.at(path), is_refusal))
    return reading


def _problems(values: dict[str, Any], reading: Reading) -> Iterator[tuple[str, str, bool]]:
    for key in sorted(values.keys() - KEPT):
        yield key, "is no key of a task, and is left out", False
    try:
        task = task_from_osworld(values, where="task", screen=(512, 384))
    except LoadError as error:
        yield from ((path, message, True) for path, message in error.problems)
        return
    reading.task = task
    yield from ((path, message, True) for path, message in unusable(task))
    for problem in task_problems(task):
        place = PLACE.match(problem)
        yield _path_of(place[0]) if place else "", f"unsupported on Deskhand's desktops: {problem}", False


def _path_of(place: str) -> str:
    """ "evaluator[0].expected" -> "evaluator.expected.0", as it stands in the text."""
    if place.startswith("milestones[") and "." in place:
        milestone, _, rest = place.partition(".")
        return f"{_path_of(milestone)}.{_path_of(rest)}"
    if part := EVALUATOR_PART.match(place):
        return f"evaluator.{part[2] or 'func'}.{part[1]}"
    return re.sub(r"\[(\d+)\]", r".\1", place).rstrip(".")


class _Lines:
    """Lines of a JSON text by path; read when first asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: dict[str, int] | None = None

    def at(self, path: str) -> int | None:
        """The line of `path`, or of what it would be in; None when nothing of it is there."""
        if self._lines is None:
            try:  # JSON is YAML but for its tabs, which stand between values alone
                self._lines = lines_of(self._text.replace("\t", " "), MAX_DEPTH)
            except yaml.YAMLError:
                self._lines = {}
        parts = path.split(".")
        shorter = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
        return next((self._lines[part] for part in shorter if part in self._lines), None)
