"""Qwen3.5's call as XML: values are texts, and the mark that ends them cannot be typed."""

import pytest

from training.actions.parse_completion import parse_completion
from training.actions.write_completion import format_action
from training.contracts.types import Action

SCREEN = (1920, 1080)


def test_a_text_keeps_its_lines_and_braces():
    action = Action(kind="type", text='{"a": [1]}\n\n<b>')
    text = format_action(action, "xml-call")
    assert parse_completion(text, dialect="xml-call", screen=SCREEN).action == action


@pytest.mark.parametrize("mark", ["</parameter>", "</think>"])
def test_the_marks_that_would_end_it_are_refused(mark):
    with pytest.raises(ValueError, match="the xml-call dialect cannot type the closing tag"):
        format_action(Action(kind="type", text=f"a{mark}"), "xml-call")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("<tool_call>\n<function=bash>\n</function>\n</tool_call>", "unknown tool 'bash'"),
        ("<tool_call>\n<function=>\n</function>\n</tool_call>", "has no name"),
        ("<tool_call>\n<function=computer_use>\n</function>\n</tool_call>", 'no "action"'),
        ("<function=computer_use>\n<parameter=action>\nwait", "is not closed"),
    ],
)
def test_anything_else_is_an_error_that_says_why(text, part):
    assert part in (parse_completion(text, dialect="xml-call", screen=SCREEN).error or "")
