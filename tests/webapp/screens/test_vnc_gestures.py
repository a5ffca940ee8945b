"""Pointer and key events become the actions that a policy could have taken."""

import pytest

from training.contracts.types import Action
from webapp.screens.rfb.gestures_to_actions import GestureReader
from webapp.screens.rfb.keysyms import character
from webapp.screens.rfb.protocol import KeyEvent, PointerEvent

CTRL, SHIFT, ALT, SUPER, RETURN, LEFT = 0xFFE3, 0xFFE1, 0xFFE9, 0xFFEB, 0xFF0D, 0xFF51


class Person:
    """Does things at chosen moments; `actions` is what was recorded, in order of index."""

    def __init__(self) -> None:
        self.reader = GestureReader()
        self.now = 100.0
        self.found: dict[int, Action | None] = {}
        self.began: dict[int, float] = {}

    def _keep(self, gestures) -> None:
        for gesture in gestures:
            self.found[gesture.index] = gesture.action
            self.began[gesture.index] = gesture.began_at

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._keep(self.reader.tick(self.now))

    def mouse(self, buttons: int, x: int, y: int, after: float = 0.05) -> None:
        self.wait(after)
        self._keep(self.reader.read(PointerEvent(buttons, x, y), self.now))

    def down(self, keysym: int) -> None:
        self.wait(0.05)
        self._keep(self.reader.read(KeyEvent(keysym, True), self.now))

    def up(self, keysym: int) -> None:
        self._keep(self.reader.read(KeyEvent(keysym, False), self.now))

    def tap(self, *keysyms: int) -> None:
        for keysym in keysyms:
            self.down(keysym)
        for keysym in reversed(keysyms):
            self.up(keysym)

    def type(self, text: str) -> None:
        for char in text:
            self.tap(ord(char))

    def click(self, x: int, y: int, button: int = 1) -> None:
        self.mouse(button, x, y)
        self.mouse(0, x, y)

    def actions(self) -> list[dict]:
        self._keep(self.reader.finish(self.now))
        actions = [self.found[index] for index in sorted(self.found)]
        return [action.model_dump(mode="json", exclude_defaults=True) for action in actions]


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.mark.parametrize(("times", "kind"), [(1, "click"), (2, "double_click"), (3, "triple_click")])
def test_quick_clicks_at_one_place_are_one_action(person, times, kind):
    for _ in range(times):
        person.click(30, 40)
    assert person.actions() == [{"kind": kind, "x": 30, "y": 40}]


def test_slow_or_distant_clicks_are_several(person):
    person.click(30, 40)
    person.wait(1)
    person.click(30, 40)
    person.click(90, 40)
    assert [action["kind"] for action in person.actions()] == ["click", "click", "click"]


@pytest.mark.parametrize(("button", "kind"), [(2, "middle_click"), (4, "right_click")])
def test_other_buttons_have_actions_of_their_own(person, button, kind):
    person.click(7, 8, button)
    assert person.actions() == [{"kind": kind, "x": 7, "y": 8}]


def test_a_press_that_moves_is_a_drag(person):
    person.mouse(1, 10, 10)
    person.mouse(1, 50, 60)
    person.mouse(0, 80, 90)
    assert person.actions() == [{"kind": "drag", "x": 10, "y": 10, "to_x": 80, "to_y": 90}]


def test_wheel_notches_at_one_place_are_one_scroll_per_direction(person):
    for _ in range(3):
        person.click(5, 6, 1 << 4)
    person.click(5, 6, 1 << 3)
    assert person.actions() == [
        {"kind": "scroll", "x": 5, "y": 6, "scroll_y": 3},
        {"kind": "scroll", "x": 5, "y": 6, "scroll_y": -1},
    ]


def test_characters_are_one_text_until_the_person_pauses(person):
    person.type("blue ")
    person.tap(SHIFT, ord("H"))
    person.type("en")
    person.wait(3)
    person.type("!")
    assert person.actions() == [{"kind": "type", "text": "blue Hen"}, {"kind": "type", "text": "!"}]
    assert person.began[0] == pytest.approx(100.05)


def test_shortcuts_and_keys_without_a_character_are_key_actions(person):
    person.type("a")
    person.tap(CTRL, ord("s"))
    person.tap(CTRL, SHIFT, ord("T"))
    person.tap(RETURN)
    person.tap(SHIFT, LEFT)
    person.tap(ALT, 0xFFC1)
    person.tap(SUPER)
    assert person.actions() == [
        {"kind": "type", "text": "a"},
        {"kind": "key", "keys": ["ctrl", "s"]},
        {"kind": "key", "keys": ["ctrl", "shift", "t"]},
        {"kind": "key", "keys": ["Return"]},
        {"kind": "key", "keys": ["shift", "Left"]},
        {"kind": "key", "keys": ["alt", "F4"]},
        {"kind": "key", "keys": ["super"]},
    ]


def test_shift_alone_is_no_action(person):
    person.tap(SHIFT)
    assert person.actions() == []


def test_modifiers_that_are_held_belong_to_the_pointer(person):
    person.down(CTRL)
    person.click(3, 4)
    person.click(90, 4)
    person.click(90, 4, 1 << 4)
    person.up(CTRL)
    person.down(SHIFT)
    person.mouse(1, 10, 10)
    person.mouse(0, 80, 90)
    person.up(SHIFT)
    person.click(3, 4)
    assert person.actions() == [
        {"kind": "click", "x": 3, "y": 4, "modifiers": ["ctrl"]},
        {"kind": "click", "x": 90, "y": 4, "modifiers": ["ctrl"]},
        {"kind": "scroll", "x": 90, "y": 4, "scroll_y": 1, "modifiers": ["ctrl"]},
        {"kind": "drag", "x": 10, "y": 10, "to_x": 80, "to_y": 90, "modifiers": ["shift"]},
        {"kind": "click", "x": 3, "y": 4},
    ]


def test_a_click_with_another_modifier_is_another_click(person):
    person.click(3, 4)
    person.down(CTRL)
    person.click(3, 4)
    assert [action["kind"] for action in person.actions()] == ["click", "click"]


def test_more_than_three_clicks_are_counted(person):
    for _ in range(5):
        person.click(3, 4)
    assert person.actions() == [{"kind": "click", "x": 3, "y": 4, "presses": 5}]


@pytest.mark.parametrize(("button", "name"), [(2, "middle"), (4, "right")])
def test_a_drag_says_its_button(person, button, name):
    person.mouse(button, 10, 10)
    person.mouse(0, 80, 90)
    assert person.actions() == [{"kind": "drag", "x": 10, "y": 10, "to_x": 80, "to_y": 90, "button": name}]


def hold(person: Person, keysym: int, seconds: float, repeats: int = 0) -> None:
    person.down(keysym)
    for _ in range(repeats):
        person.wait(seconds / (repeats + 1) - 0.05)
        person.down(keysym)
    person.wait(seconds / (repeats + 1))
    person.up(keysym)


def test_a_key_that_stays_down_is_held_for_that_time(person):
    hold(person, LEFT, 1.5)
    hold(person, LEFT, 0.3)
    person.down(CTRL)
    hold(person, ord("z"), 2.0)
    person.up(CTRL)
    person.type("ab")
    hold(person, ord("w"), 3.0)
    hold(person, SUPER, 1.0)
    assert person.actions() == [
        {"kind": "key", "keys": ["Left"], "seconds": 1.5},
        {"kind": "key", "keys": ["Left"]},
        {"kind": "key", "keys": ["ctrl", "z"], "seconds": 2.0},
        {"kind": "type", "text": "ab"},
        {"kind": "key", "keys": ["w"], "seconds": 3.0},
        {"kind": "key", "keys": ["super"], "seconds": 1.0},
    ]


def test_a_key_that_comes_again_is_held_until_a_desktop_repeats_it_as_often(person):
    hold(person, LEFT, 1.5, repeats=10)
    assert person.actions() == [{"kind": "key", "keys": ["Left"], "seconds": 0.66 + 9.5 * 0.04}]


def test_a_character_that_comes_again_is_text(person):
    person.type("a")
    hold(person, ord("b"), 1.5, repeats=3)
    assert person.actions() == [{"kind": "type", "text": "abbbb"}]


def test_switching_on_while_alt_is_held_is_one_chord(person):
    person.down(ALT)
    person.tap(0xFF09)
    person.wait(3)
    person.tap(0xFF09)
    person.up(ALT)
    person.tap(RETURN)
    assert person.actions() == [
        {"kind": "key", "keys": ["alt", "Tab"], "presses": 2},
        {"kind": "key", "keys": ["Return"]},
    ]


def test_an_action_is_told_when_it_begins_and_when_it_is_over():
    reader = GestureReader(next_index=7)
    (begun,) = reader.read(KeyEvent(ord("x"), True), 5.0)
    assert (begun.index, begun.began_at, begun.action) == (7, 5.0, None)
    assert reader.read(KeyEvent(ord("x"), False), 5.1) == []
    assert reader.tick(5.5) == []
    (ended,) = reader.tick(8.0)
    assert (ended.index, ended.action.text, ended.ended_at) == (7, "x", 5.0)


@pytest.mark.parametrize(
    ("keysym", "char"),
    [(0x41, "A"), (0xE9, "é"), (0x20AC, "€"), (0x01004E2D, "中"), (0xFFB7, "7"), (0x6C1, "а"), (0x7E1, "α")],
)
def test_keysyms_of_all_kinds_have_their_character(keysym, char):
    assert character(keysym) == char


def test_keys_without_a_character_have_none():
    assert [character(keysym) for keysym in (RETURN, CTRL, 0xFE03, 0x01000007)] == [None] * 4
