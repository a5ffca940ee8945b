"""What the files of desk-office share: kinds of jobs, their words by split, first windows, evaluators."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from training.content.task_sets.steps_and_evaluators import place_window, press_keys, setup_step, wait
from training.content.task_sets.task_family import Family, Problem, Split
from training.contracts.types import Action, ActionKind

SCREEN = (1024, 768)
HOME = "/home/user"
NUM_TRAIN, NUM_HELDOUT = 2, 1
MAX_TURNS = {1: 5, 2: 9, 3: 14, 4: 24}
"""Level -> turns; an oracle takes at most 2, 5, 9 and 15 of them."""

PEOPLE = (
    "Ada Brooks", "Ben Carter", "Cleo Dunn", "Dev Ellis", "Eva Frost", "Finn Grant", "Gina Hobbs",
    "Hugo Ives", "Iris Jones", "Jack Kerr", "Kira Lowe", "Liam Marsh", "Mona Nash", "Nils Owen",
    "Olga Pratt", "Paul Quinn",
)  # fmt: skip
GOODS = (
    "apples", "baskets", "candles", "desks", "envelopes", "forks", "gloves", "hammers", "jars", "keyboards",
    "lamps", "mirrors", "napkins", "oranges", "pencils", "quilts", "rulers", "stamps", "towels", "umbrellas",
)  # fmt: skip
CITIES = (
    "Athens", "Berlin", "Cairo", "Dublin", "Essen", "Geneva", "Hanoi", "Lima", "Madrid", "Nairobi", "Oslo",
    "Paris", "Quito", "Rome", "Seoul", "Tokyo",
)  # fmt: skip
TOPICS = (
    "archive", "budget", "calendar", "drafts", "events", "figures", "guides", "history", "invoices",
    "journal", "letters", "minutes", "notes", "orders", "photos", "recipes",
)  # fmt: skip


def kind(name: str, level: int, build: Callable[[random.Random, Split], Problem]) -> Family:
    """APPLICATION/KIND of a job; its application is the family of its tasks."""
    return Family(name, level, MAX_TURNS[level], NUM_TRAIN, NUM_HELDOUT, build)


def words(rng: random.Random, split: Split, source: Sequence[str], number: int) -> list[str]:
    """Different words in a random order; every fourth one occurs in held-out tasks only."""
    mine = [word for index, word in enumerate(source) if (index % 4 == 1) == (split == "heldout")]
    return rng.sample(mine, number)


def word(rng: random.Random, split: Split, source: Sequence[str]) -> str:
    return words(rng, split, source, 1)[0]


REST = wait(0.5)
"""After a button was pressed by its key: GTK does what it is for a quarter second later."""
OTHER_WINDOW = (press_keys("alt", "Tab"), REST)
"""The window before this one comes to the front."""


def click(x: int, y: int) -> Action:
    return Action(kind=ActionKind.CLICK, x=x, y=y)


def double_click(x: int, y: int) -> Action:
    return Action(kind=ActionKind.DOUBLE_CLICK, x=x, y=y)


def upload(path: str, base64: str) -> dict[str, Any]:
    return setup_step("upload_file", files=[{"path": path, "content_base64": base64}])


def wait_for_window(title: str) -> tuple[dict[str, Any], ...]:
    """Set-up steps until a program (165 s at most) has its window, the keyboard, and rests."""
    loop = f"timeout 55 sh -c \"until wmctrl -l | grep -qF '{title}'; do sleep 0.3; done\""
    return (
        *(setup_step("execute", command=loop, shell=True),) * 2,
        setup_step("execute", command=loop, shell=True, until={"returncode": 0}),
        setup_step("activate_window", window_name=title),
    )


def open_in_editor(
    path: str, text: str, box: tuple[int, int, int, int] = (192, 140, 640, 480)
) -> tuple[dict[str, Any], ...]:
    """Set-up steps: the text editor on a file that holds `text`."""
    x, y, width, height = box
    return (
        setup_step("write_file", path=path, content=text),
        setup_step("launch", command=["mousepad", path]),
        place_window(path.rsplit("/", 1)[-1], box),
        setup_step("wait_color", x=x + width // 2, y=y + height - 30, color="#ffffff"),
    )


# -- evaluators -------------------------------------------------------------------------------


def command_says(command: str, expected: str, wait_s: float = 2.0) -> dict[str, Any]:
    """Evaluator: a shell command's output, exactly."""
    return {
        "func": "exact_match",
        "result": {"type": "vm_command_line", "command": command, "shell": True},
        "expected": {"type": "rule", "rules": {"expected": expected}},
        "wait_s": wait_s,
    }


def folder_holds(folder: str, paths: Sequence[str]) -> dict[str, Any]:
    """Evaluator: everything below a folder, by paths relative to it, and nothing else."""
    listing = "".join(f"./{path}\n" for path in sorted(paths))
    return command_says(f"cd {folder} && find . -mindepth 1 | LC_ALL=C sort", listing)


def window_in_front(title: str, wait_s: float = 2.0) -> dict[str, Any]:
    """Evaluator: a window whose title contains this is open and in front; half when it is open only."""
    return {
        "func": "window_open",
        "result": {"type": "guest_windows"},
        "expected": {"type": "rule", "rules": {"title": title}},
        "wait_s": wait_s,
    }


def setting_is(path: str, name: str, value: str, before: str) -> dict[str, Any]:
    """Evaluator: a line NAME=VALUE in a program's file of settings."""
    return {
        "func": "setting_value",
        "result": {"type": "guest_setting", "key": path, "name": name},
        "expected": {"type": "rule", "rules": {"value": value, "before": before, "had_key": True}},
        "wait_s": 3.0,
    }


def json_holds(getter: dict[str, Any], *expected: tuple[list[str | int], Any]) -> dict[str, Any]:
    """Evaluator: values in a JSON document, by their paths."""
    expect = [{"key": key, "method": "eq", "ref": value} for key, value in expected]
    return {
        "func": "check_json",
        "result": getter,
        "expected": {"type": "rule", "rules": {"expect": expect}},
        "wait_s": 5.0,
    }


def all_of(*evaluators: dict[str, Any]) -> dict[str, Any]:
    """Evaluator: the mean of several, 0 when one of them is 0."""
    columns = {key: [evaluator[key] for evaluator in evaluators] for key in ("func", "result", "expected")}
    options = [evaluator.get("options", {}) for evaluator in evaluators]
    wait_s = max(evaluator["wait_s"] for evaluator in evaluators)
    return {**columns, "options": options, "conj": "and", "wait_s": wait_s}
