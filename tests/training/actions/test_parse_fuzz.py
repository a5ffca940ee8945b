"""No text makes the parser raise, and no coordinate comes from anywhere but the text."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.actions.dialects.registry import DIALECTS
from training.actions.parse_completion import MAX_COMPLETION_CHARACTERS, parse_completion
from training.contracts.config import CoordinateSpace
from training.contracts.types import ParsedCompletion

SCREEN = (512, 384)
NAMES_OF_DIALECTS = ("auto", *(row.name for row in DIALECTS))
FRAGMENTS = st.sampled_from(
    [
        '{"action":"left_click","coordinate":[',
        '"action":', '"name":"computer_use"', '"arguments":{', "350", "-1", "1e999", "NaN", "720]}", "}", "{",
        "[", '"',
        "<tool_call>", "</tool_call>", "<action>", "</action>", "<done/>", "sendkey ctrl-", "type ", "wait ",
        "pyautogui.", "click(", "hotkey('ctrl', ", "write(", "time.sleep(", ")", "\n", "```python\n", "```",
        "WAIT",
        "__import__('os').system('x')", "lambda: 0", "\x00", "\ud800", "é", "\\u0000", "*",
        "**{}",
        "import pyautogui\n",
        "<function=computer_use>", "<parameter=action>", "</parameter>", "</function>", "</think>\n",
        "<think>", "Action: ", "click(start_box='", "keyDown('shift')\n", "```\nDONE", "pyperclip.copy(",
        "with pyautogui.hold('ctrl'):\n    ", '"type":"click",', '"tool_call":{"tool_name":"click_desktop",',
        '"tool_calls":[', '"path":[',
    ]
)  # fmt: skip
SOUP = st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=12).map("".join)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["left_click", "click", "scroll", "type", "key", "wait", "terminate", "left_click_drag", "x"]
)
KEYS = st.sampled_from(
    ["coordinate", "text", "keys", "time", "status", "direction", "amount", "pixels", "key"]
)
CALLS = st.builds(
    lambda name, rest: json.dumps({"action": name, **rest}),
    NAMES,
    st.dictionaries(KEYS, JSON_VALUES, max_size=3),
)


def check(parsed: ParsedCompletion) -> None:
    assert (parsed.action is None) != (parsed.error is None)
    ParsedCompletion.model_validate_json(parsed.model_dump_json())


@settings(max_examples=600)
@given(st.one_of(SOUP, CALLS, st.text()))
def test_any_text_is_an_action_or_an_error(text):
    for dialect in NAMES_OF_DIALECTS:
        check(parse_completion(text, dialect=dialect, screen=SCREEN))


@settings(max_examples=300)
@given(st.text(alphabet=st.characters(exclude_categories=["Nd", "Nl", "No"]), max_size=60))
def test_a_text_without_digits_never_points_anywhere(text):
    for wrapped in (text, f'{{"action":"left_click","coordinate":{text}}}', f"pyautogui.click({text})"):
        action = parse_completion(wrapped, screen=SCREEN).action
        assert action is None or (action.x, action.y, action.to_x, action.to_y) == (None,) * 4


@settings(max_examples=300)
@given(st.integers(-2000, 2000), st.integers(-2000, 2000))
def test_coordinates_are_the_ones_in_the_text(x, y):
    parsed = parse_completion(
        f'{{"action":"left_click","coordinate":[{x},{y}]}}', space=CoordinateSpace.SCREEN, screen=SCREEN
    )
    assert (parsed.action.x, parsed.action.y) == (x, y)


def test_nothing_in_a_completion_is_run(tmp_path):
    target = tmp_path / "ran"
    for text in (
        f"pyautogui.write(open({str(target)!r}, 'w').write('x'))",
        f"__import__('pathlib').Path({str(target)!r}).touch()",
        f"pyautogui.click(exec(\"open({str(target)!r}, 'w')\"), 1)",
        f"```python\nimport pyautogui\nopen({str(target)!r}, 'w')\n```",
    ):
        assert parse_completion(text, screen=SCREEN).error
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    ["x" + " " * 400_000 + "x", "</s>" * 200_000 + "x", "x" + "</s> " * 200_000],
    ids=["blanks", "marks before the end", "marks"],
)
def test_a_long_completion_is_refused_at_once(text):
    """A pattern that tries each length of a run takes hours for these."""
    assert parse_completion(text, screen=SCREEN).action is None


PIECES = (" ", "\n", "\t", "`", "```", "{", "{ ", "<action>", "<done", "Action:", "\\", '"', "(", "[", "-")
BEFORE = ("", "```", '{"', "<action>", "pyautogui.", "Action: ")


@pytest.mark.parametrize("dialect", NAMES_OF_DIALECTS)
def test_runs_of_one_piece_take_no_square_of_their_length(dialect):
    for piece, before in product(PIECES, BEFORE):
        run = piece * ((MAX_COMPLETION_CHARACTERS - 20) // len(piece))
        check(parse_completion(f"{before}{run}x", dialect=dialect, screen=SCREEN))
