"""Every table of keys knows exactly the keys of `training.actions.key_names`, by its own codes."""

import sys
from pathlib import Path

import pytest
from Xlib import XK

import workers.guest
from training.actions.key_names import ALIASES, MODIFIERS, NAMED, canonical_key
from training.actions.write.pyautogui_call import KEYS, key_of
from webapp.screens.rfb import keysyms
from workers.desktops.console_contract import ActionRefused
from workers.desktops.keysym_names import X_NAMES, x_name
from workers.desktops.qemu.keyboard_layout import BY_NAME, PUNCTUATION, RIGHT_HAND, keys_of_chord
from workers.desktops.x11.xtest_input import keysym_of

SHIM = Path(workers.guest.__file__).parent / "shim"


@pytest.fixture(scope="module")
def shim_keys():
    """The keys of the guest's own pyautogui."""
    known = set(sys.modules)
    sys.path.insert(0, str(SHIM))
    try:
        import pyautogui

        assert Path(pyautogui.__file__).parent == SHIM
        yield pyautogui.KEYS
    finally:
        sys.path.remove(str(SHIM))
        for name in ("pyautogui", "deskhand_input", "deskhand_easing"):
            if name not in known:
                sys.modules.pop(name, None)


def test_no_spelling_belongs_to_two_keys():
    spellings = [spelling for name, others in ALIASES.items() for spelling in (name.lower(), *others)]
    assert len(spellings) == len(set(spellings))
    assert all(spelling == spelling.lower() for spelling in spellings)


@pytest.mark.parametrize("table", [KEYS, X_NAMES, BY_NAME], ids=["pyautogui", "x", "qemu"])
def test_a_table_holds_canonical_names_only(table):
    assert set(table) <= set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_every_key_can_be_pressed_everywhere(name, shim_keys):
    (code,) = keys_of_chord((name,))
    assert canonical_key(code) == name
    assert XK.string_to_keysym(x_name(name)) == keysym_of(name) != 0
    assert canonical_key(key_of(name)) == name
    assert shim_keys[key_of(name)] == x_name(name)


@pytest.mark.parametrize(
    ("spelling", "name"), [(s, name) for name, others in ALIASES.items() for s in others]
)
def test_every_spelling_presses_its_key(spelling, name):
    assert keys_of_chord((spelling,)) == keys_of_chord((name,))
    assert canonical_key(spelling) == name


def test_qemus_names_of_characters_are_spellings_of_them():
    for char, code in PUNCTUATION.items():
        assert canonical_key(code) == canonical_key(char)


def test_a_viewer_sends_canonical_names():
    assert set(keysyms.NAMES.values()) == set(NAMED) - MODIFIERS - {"space"}
    assert set(keysyms.MODIFIERS.values()) == MODIFIERS
    assert all(keysyms.character(number) is None for number in keysyms.NAMES)


def test_the_right_modifiers_keep_their_side():
    assert keys_of_chord(("Control_R", "Super_R")) == ["ctrl_r", "meta_r"]
    assert {canonical_key(name) for name in RIGHT_HAND} == MODIFIERS
    assert keysym_of("Control_R") == XK.XK_Control_R


def test_an_unknown_key_is_refused_by_name():
    with pytest.raises(ActionRefused, match="no key named 'nosuch'"):
        keys_of_chord(("nosuch",))
