"""A completion with several actions: as many as `prompt.actions_per_turn` allows, in order."""

import pytest

from training.actions.parse_completion import parse_completion

TWO = [
    ("json", '{"action":"key","keys":["a"]}\n{"action":"wait","time":1}'),
    (
        "tool-call",
        'Both.\n<tool_call>{"name":"computer_use","arguments":{"action":"key","keys":["a"]}}</tool_call>\n'
        '<tool_call>\n{"name":"computer_use","arguments":{"action":"wait","time":1}}\n</tool_call>',
    ),
    (
        "json",
        '{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":'
        '"computer_use","arguments":"{\\"action\\":\\"key\\",\\"keys\\":[\\"a\\"]}"}},{"id":"2","type":"function",'
        '"function":{"name":"computer_use","arguments":"{\\"action\\":\\"wait\\",\\"time\\":1}"}}]}',
    ),
    ("keyboard", "I do <action>sendkey a</action> then <action>wait 1</action>"),
]


@pytest.mark.parametrize(("dialect", "text"), TWO)
def test_several_actions_are_read_in_order(dialect, text):
    parsed = parse_completion(text, dialect=dialect, screen=(512, 384), most=2)
    assert [(action.kind, action.keys, action.seconds) for action in parsed.actions] == [
        ("key", ("a",), 0.0),
        ("wait", (), 1.0),
    ]


@pytest.mark.parametrize(("dialect", "text"), TWO)
def test_more_than_allowed_is_an_error_that_says_the_number(dialect, text):
    parsed = parse_completion(text, dialect=dialect, screen=(512, 384))
    assert parsed.error == "more than one action: 2, where prompt.actions_per_turn allows 1"


def test_nothing_stands_behind_the_end():
    text = "<done/><action>sendkey a</action>"
    parsed = parse_completion(text, dialect="keyboard", screen=(512, 384), most=4)
    assert parsed.error == "actions after the one that ends the episode"


def test_a_pause_behind_a_call_is_an_action_only_where_there_is_room():
    """OSWorld's prompt asks for pauses; after every turn there is one anyway."""
    text = "pyautogui.press('a')\ntime.sleep(1)\npyautogui.press('b')"
    kinds = [
        [action.kind for action in parse_completion(text, screen=(512, 384), most=most).actions]
        for most in (1, 2, 3)
    ]
    assert kinds == [[], ["key", "key"], ["key", "wait", "key"]]
