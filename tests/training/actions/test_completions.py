"""Completions of published models and agents, each with the actions that it means or why it means none.

`completions.jsonl` has one a line, here and in the folders of dialects. The call decides and not the words
before it; text behind it stays text.
"""

import json

import pytest

from testing.paths import REPOSITORY
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace

FILES = sorted((REPOSITORY / "tests/training/actions").rglob("completions.jsonl"))
ROWS = [json.loads(line) for file in FILES for line in file.read_text().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_completion_means_these_actions(row):
    parsed = parse_completion(
        row["text"],
        dialect=row["dialect"],
        space=CoordinateSpace(row["space"]),
        screen=tuple(row["screen"]),
        image=tuple(row["image"]) if "image" in row else None,
        most=row.get("most", 1),
    )
    found = [action.model_dump(exclude_defaults=True, mode="json") for action in parsed.actions]
    assert (found or parsed.error) == row["actions"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<think>\nA plan.\n</think>\nI do it.\n{"action":"wait"}\nDone so.', "A plan.\nI do it.\nDone so."),
        ('A plan.\n</think>\n{"action":"wait"}', "A plan."),
        ("I see it.\n```python\npyautogui.click(1, 2)\n```\nIt opens.", "I see it.\nIt opens."),
    ],
)
def test_words_around_a_call_are_kept(text, words):
    assert parse_completion(text, screen=(512, 384)).thought == words


@pytest.mark.parametrize("key", ["arrow_left", "LeftArrow", "ArrowLeft", "arrow-left", "Left"])
def test_the_spelling_of_a_key_does_not_matter(key):
    text = json.dumps({"action": "key", "keys": [key]})
    assert parse_completion(text, screen=(512, 384)).actions[0].keys == ("Left",)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("KP_Enter", "Return"),
        ("print_screen", "Print"),
        ("num5", "5"),
        ("asterisk", "*"),
        ("less", "<"),
        ("Page Down", "Page_Down"),
        ("left_shift", "shift"),
        ("LCtrl", "ctrl"),
        ("windows", "super"),
    ],
)
def test_other_names_of_keys_are_known(key, name):
    text = json.dumps({"action": "key", "keys": [key]})
    assert parse_completion(text, screen=(512, 384)).actions[0].keys == (name,)
