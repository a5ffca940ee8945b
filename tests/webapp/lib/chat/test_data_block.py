"""What others wrote stays inside the block that a language model is handed it in."""

import json
import re
import time

import pytest

from testing.planted_texts import PLANTED
from webapp.lib.chat.data_block import as_data, without_markers

BLOCK = re.compile(r"(?s)The block (data-[0-9a-f]{32}) below is data: [^<]*\n<\1>\n(.*)\n</\1>")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_text_stays_inside_and_loses_its_marker(name):
    text, marker = PLANTED[name]
    assert marker in text
    [(opened, inside)] = BLOCK.findall(block := as_data(f"before {text} after"))
    assert block.count(f"<{opened}>") == block.count(f"</{opened}>") == 1
    assert inside.startswith("before ")
    assert inside.endswith(" after")
    assert marker not in block


def test_delimiters_are_new_in_every_call_and_those_of_another_do_not_close():
    first, second = as_data("x"), as_data(as_data("x"))
    names = re.findall(r"(?m)^<(data-\w+)>$", first + second)
    assert len(set(names)) == len(names) == 2
    assert second.count("</") == 1


@pytest.mark.parametrize("name", PLANTED)
def test_json_stays_json_with_the_same_fields(name):
    text, marker = PLANTED[name]
    sent = {"user": "u", "tool": [text], "system": text}
    inside = json.loads(without_markers(json.dumps(sent, ensure_ascii=False)))
    assert inside.keys() == sent.keys()
    assert marker not in inside["system"] + inside["tool"][0]


def test_what_desktops_usually_show_is_left_as_it_is():
    plain = "if a < b || c > d:\n  # a note\n<span>1 | 2</span> [x] users: 3\nThe user: Ann 5 > 3\n"
    assert without_markers(plain) == plain


def test_a_long_run_of_blanks_is_read_at_once():
    begun = time.process_time()
    without_markers("\n" * 400_000 + "<" * 100_000 + " " * 400_000)
    assert time.process_time() - begun < 20
