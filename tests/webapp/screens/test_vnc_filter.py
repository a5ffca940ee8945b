"""What of a browser's RFB messages reaches the desktop."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.rfb_messages import (
    CLICK,
    CONTINUOUS,
    CUT_TEXT,
    HELLO,
    KEY,
    PIXEL_FORMAT,
    QEMU_KEY,
    RESIZE,
    SERVER_INIT,
    UPDATE,
    XVP,
    encodings,
    greeted,
)
from webapp.screens.rfb.browser_filter import BrowserFilter
from webapp.screens.rfb.protocol import (
    CONTROL_ENCODINGS,
    WATCHING_ENCODINGS,
    KeyEvent,
    PointerEvent,
    RfbError,
)

INPUT_KINDS = {4, 5, 6, 150, 248, 250, 251, 255}
MESSAGES = [PIXEL_FORMAT, UPDATE, CLICK, KEY, CUT_TEXT, XVP, RESIZE, QEMU_KEY, CONTINUOUS, encodings(7, 16)]


def kinds(forwarded: bytes) -> list[int]:
    """Message types in bytes that went to the desktop; fails on anything that is no whole message."""
    lengths = {0: 20, 3: 10, 4: 8, 5: 6}
    found, at = [], 0
    while at < len(forwarded):
        kind = forwarded[at]
        found.append(kind)
        at += 4 + 4 * int.from_bytes(forwarded[at + 2 : at + 4], "big") if kind == 2 else lengths[kind]
    assert at == len(forwarded)
    return found


def test_the_browser_is_greeted_by_the_proxy_itself():
    side = BrowserFilter(SERVER_INIT, wants_control=False)
    assert side.greeting() == b"RFB 003.008\n"
    heard = side.hear(HELLO)
    assert bytes(heard.reply) == b"\x01\x01" + bytes(4) + SERVER_INIT
    assert not heard.forward


@pytest.mark.parametrize("hello", [b"RFB 003.003\n", b"GET / HTTP/1", b"RFB 003.008\n\x02"])
def test_another_protocol_or_security_type_ends_the_connection(hello):
    with pytest.raises(RfbError):
        BrowserFilter(SERVER_INIT, wants_control=False).hear(hello)


@pytest.mark.parametrize("message", [CLICK, KEY, CUT_TEXT, XVP, RESIZE, QEMU_KEY, CONTINUOUS])
def test_a_watchers_input_is_dropped_and_what_follows_is_understood(message):
    heard = greeted().hear(message + UPDATE)
    assert bytes(heard.forward) == UPDATE
    assert not heard.inputs


def test_who_controls_acts_by_pointer_and_keys_only():
    side = greeted(may_act=True, wants_control=True)
    heard = side.hear(CLICK + CUT_TEXT + XVP + RESIZE + QEMU_KEY + CONTINUOUS + KEY)
    assert bytes(heard.forward) == CLICK + KEY
    assert heard.inputs == [
        PointerEvent(1, 5, 6),
        PointerEvent(0, 5, 6),
        KeyEvent(ord("a"), True),
        KeyEvent(ord("a"), False),
    ]


def test_padding_and_unknown_buttons_of_the_browser_do_not_travel():
    side = greeted(may_act=True)
    heard = side.hear(bytes([4, 255, 13, 37, 0, 0, 0, 97]) + bytes([5, 0x81, 0, 1, 0, 2]))
    assert bytes(heard.forward) == bytes([4, 1, 0, 0, 0, 0, 0, 97, 5, 1, 0, 1, 0, 2])


def test_encodings_that_would_change_the_protocol_are_not_asked_for():
    dangerous = (-316, -258, -308, -313, -312, -1063131698, -307, 50, 21)
    heard = greeted().hear(encodings(7, -239, *dangerous, 16, -223))
    assert bytes(heard.forward) == encodings(7, 16, -223)
    heard = greeted(wants_control=True).hear(encodings(7, -239, *dangerous))
    assert bytes(heard.forward) == encodings(7, -239)


def test_letting_go_releases_what_the_browser_holds_down():
    side = greeted(may_act=True)
    side.hear(bytes([4, 1, 0, 0, 0, 0, 0xFF, 0xE3]) + bytes([5, 1, 0, 8, 0, 9]))
    assert side.release_all() == bytes([4, 0, 0, 0, 0, 0, 0xFF, 0xE3, 5, 0, 0, 8, 0, 9])
    assert side.release_all() == b""


@pytest.mark.parametrize(
    "message", [bytes([99]), bytes([248]), bytes([255, 1]) + bytes(10), bytes([6, 0, 0, 0, 255, 255, 255, 0])]
)
def test_what_is_not_understood_ends_the_connection(message):
    with pytest.raises(RfbError):
        greeted(may_act=True).hear(message)


def test_a_long_clipboard_is_skipped_without_being_kept():
    side = greeted()
    side.hear(bytes([6, 0, 0, 0]) + (1 << 24).to_bytes(4, "big"))
    for _ in range(256):
        assert not side.hear(bytes(1 << 16)).forward
    assert len(side._waiting) == 0
    assert bytes(side.hear(UPDATE).forward) == UPDATE


@settings(max_examples=60)
@given(st.lists(st.sampled_from(MESSAGES), max_size=30), st.integers(0, 2**32), st.booleans())
def test_it_does_not_matter_how_the_bytes_are_cut(messages, seed, may_act):
    stream = b"".join(messages)
    whole = greeted(may_act=may_act).hear(stream)
    side, pieces = greeted(may_act=may_act), random.Random(seed)
    forward, inputs, at = b"", [], 0
    while at < len(stream):
        size = pieces.randint(1, 9)
        heard = side.hear(stream[at : at + size])
        forward, inputs, at = forward + bytes(heard.forward), inputs + heard.inputs, at + size
    assert forward == bytes(whole.forward)
    assert inputs == whole.inputs


@settings(max_examples=300)
@given(st.binary(max_size=600), st.booleans())
def test_no_bytes_make_it_fail_otherwise_or_let_a_watcher_act(data, wants_control):
    side = greeted(wants_control=wants_control)
    try:
        heard = side.hear(data)
    except RfbError:
        return
    assert not INPUT_KINDS & set(kinds(bytes(heard.forward)))
    assert not heard.inputs
    assert WATCHING_ENCODINGS < CONTROL_ENCODINGS


def test_a_hundred_thousand_random_messages_never_let_a_watcher_act():
    pieces = random.Random(7)
    side, forwarded = greeted(), bytearray()
    for _ in range(100_000):
        message = pieces.choice(MESSAGES)
        if pieces.random() < 0.2:
            message = message[:1] + pieces.randbytes(len(message) - 1)
        try:
            forwarded += side.hear(message).forward
        except RfbError:
            side = greeted()
        if len(side._waiting) > 5000 or len(forwarded) > 1 << 16:
            assert not INPUT_KINDS & set(kinds(bytes(forwarded)))
            forwarded.clear()
            side = greeted()
    assert not INPUT_KINDS & set(kinds(bytes(forwarded)))
