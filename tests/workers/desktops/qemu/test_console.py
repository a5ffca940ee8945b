"""The monitor's console: keys, pointer, pictures and a monitor that misbehaves."""

from __future__ import annotations

import json
import socket
import string
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.contracts.types import Action
from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.qemu.keyboard_layout import keys_of_char, keys_of_chord
from workers.desktops.qemu.monitor_client import MonitorRefused, QmpClient
from workers.desktops.qemu.monitor_input import QmpInput, axis
from workers.desktops.qemu.qmp_screen_and_input import image_of_ppm


class Monitor:
    """A scripted monitor on a real socket: answers each command with what the test put in."""

    def __init__(self, path: Path) -> None:
        self.commands: list[dict] = []
        self.answers: list[list[dict]] = []
        """Lines to send for the next commands; without any, an empty return."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def reply(self, _command: dict) -> list[dict]:
        return self.answers.pop(0) if self.answers and len(self.commands) > 1 else [{"return": {}}]

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rwb") as stream:
            stream.write(b'{"QMP": {"version": {}}}\n')
            stream.flush()
            for line in stream:
                command = json.loads(line)
                self.commands.append(command)
                if command["execute"] == "quit":
                    return
                for answer in self.reply(command):
                    number = {} if "event" in answer else {"id": command["id"]}
                    stream.write(json.dumps({**number, **answer}).encode() + b"\n")
                stream.flush()


@pytest.fixture
def monitor(short_dir: Path) -> Monitor:
    return Monitor(short_dir / "m")


@pytest.fixture
def client(monitor: Monitor, short_dir: Path) -> Iterator[QmpClient]:
    client = QmpClient(str(short_dir / "m"))
    yield client
    client.close()


def sent(monitor: Monitor) -> list[list[dict]]:
    """Events per command."""
    commands = [c for c in monitor.commands if c["execute"] == "input-send-event"]
    return [command["arguments"]["events"] for command in commands]


def test_events_before_an_answer_are_skipped(monitor, client):
    monitor.answers.append([{"event": "RTC_CHANGE"}, {"event": "STOP"}, {"return": {"status": "running"}}])
    assert client.execute("query-status") == {"status": "running"}


def test_a_refused_command_names_itself_and_qemus_reason(monitor, client):
    monitor.answers.append([{"error": {"class": "GenericError", "desc": "no such device"}}])
    with pytest.raises(MonitorRefused, match="QEMU refused device_del: no such device"):
        client.execute("device_del", id="x")


def test_a_monitor_that_hangs_up_is_an_infrastructure_error(client):
    with pytest.raises(EnvError, match="the machine is gone") as caught:
        client.execute("quit")
    assert caught.value.kind is ErrorKind.INFRA


def test_a_monitor_that_is_not_there_is_an_infrastructure_error(short_dir):
    with pytest.raises(EnvError, match="does not answer on"):
        QmpClient(str(short_dir / "none"))


def test_every_printable_ascii_character_has_keys_and_no_two_share_them():
    keys = {char: keys_of_char(char) for char in string.printable if char not in "\r\x0b\x0c"}
    assert all(keys.values())
    assert len(set(keys.values())) == len(keys)
    assert keys["A"] == ("shift", "a")
    assert keys["|"] == ("shift", "backslash")
    assert keys["\n"] == ("ret",)
    assert keys_of_char("é") is None


def test_chords_take_every_spelling_and_unknown_keys_are_refused():
    assert keys_of_chord(("Control_L", "shift", "T")) == ["ctrl", "shift", "t"]
    assert keys_of_chord(("ctrl", "Page_Up")) == ["ctrl", "pgup"]
    assert keys_of_chord(("super", "F12")) == ["meta_l", "f12"]
    with pytest.raises(ActionRefused, match="no key named 'Hyper'"):
        keys_of_chord(("Hyper",))
    with pytest.raises(ActionRefused, match="at least one key"):
        keys_of_chord(())


def test_text_is_typed_key_by_key_and_the_rest_from_inside(monitor, client):
    inside: list[str] = []
    QmpInput(client, lambda: (640, 480), inside.append).perform(Action(kind="type", text="aß€B"))
    assert inside == ["ß€"]
    assert [[(e["data"]["key"]["data"], e["data"]["down"]) for e in events] for events in sent(monitor)] == [
        [("a", True), ("a", False)],
        [("shift", True), ("b", True), ("b", False), ("shift", False)],
    ]


def test_without_an_agent_what_the_keyboard_lacks_is_refused_before_anything_is_typed(monitor, client):
    with pytest.raises(ActionRefused, match="keyboard has no '€'"):
        QmpInput(client, lambda: (640, 480), None).perform(Action(kind="type", text="10 €"))
    assert sent(monitor) == []


def test_a_click_off_the_screen_is_refused_and_nothing_is_pressed(monitor, client):
    console = QmpInput(client, lambda: (640, 480), None)
    with pytest.raises(ActionRefused, match=r"\(640, 10\) is off the screen of 640 x 480 pixels"):
        console.perform(Action(kind="click", x=640, y=10))
    with pytest.raises(ActionRefused, match="off the screen"):
        console.perform(Action(kind="drag", x=1, y=1, to_x=1, to_y=480))
    assert sent(monitor) == []


@pytest.mark.parametrize("size", [512, 640, 720, 1080, 1280, 1920, 333])
def test_every_pixel_has_its_own_place_on_the_tablet(size):
    """A guest maps the tablet's 32768 steps back by rounding down."""
    values = [axis("x", pixel, size)["data"]["value"] for pixel in range(size)]
    assert [value * size // 0x8000 for value in values] == list(range(size))


def test_pictures_are_read_and_a_broken_one_is_an_error():
    image = image_of_ppm(b"P6\n2 1\n255\n" + bytes([255, 0, 0, 0, 0, 255]))
    assert image.size == (2, 1)
    assert image.getpixel((1, 0)) == (0, 0, 255)
    for broken in (b"", b"P6\n2 1\n255\nxx", b"P5\n2 1\n255\n123456"):
        with pytest.raises(EnvError, match="cannot be read"):
            image_of_ppm(broken)


class Rings:
    """Answers of a monitor whose guest fetches its input when it is asked for the third time."""

    def __init__(self, monitor: Monitor) -> None:
        self.num_looks = 0
        self.is_fetching = True
        monitor.reply = self.reply  # type: ignore[method-assign]

    def reply(self, command: dict) -> list[dict]:
        if command["execute"] == "x-query-virtio":
            rows = [{"name": "virtio-rng", "path": "/rng"}, {"name": "virtio-input", "path": "/keyboard"}]
            return [{"return": rows}]
        if command["execute"] == "x-query-virtio-queue-status":
            return [{"return": {"vring-num": 64}}]
        if command["execute"] == "x-query-virtio-queue-element":
            self.num_looks += 1
            is_taken = self.is_fetching and self.num_looks % 3 == 0
            return [{"return": {"avail": {"idx": 40 if is_taken else 20}, "used": {"idx": 65512}}}]
        return [{"return": {}}]


def test_an_action_is_done_when_the_guest_has_fetched_its_events(monitor, client):
    rings = Rings(monitor)
    QmpInput(client, lambda: (640, 480), None).perform(Action(kind="key", keys=["a"]))
    assert rings.num_looks == 3
    looks = [c for c in monitor.commands if c["execute"] == "x-query-virtio-queue-element"]
    assert {look["arguments"]["path"] for look in looks} == {"/keyboard"}


def test_long_text_goes_in_bursts_that_the_guests_programs_have_seen(monitor, client):
    Rings(monitor)
    num_sent: list[int] = []
    console = QmpInput(client, lambda: (640, 480), None, lambda: num_sent.append(len(sent(monitor))))
    console.perform(Action(kind="type", text="x" * 40))
    assert num_sent == [16, 32]  # three events each, 48 of the 64 that a guest keeps
    assert len(sent(monitor)) == 40


def test_a_guest_that_fetches_nothing_is_an_error(monitor, client, monkeypatch):
    from workers.desktops.qemu import guest_input_queues

    Rings(monitor).is_fetching = False
    monkeypatch.setattr(guest_input_queues, "TAKEN_LIMIT_S", 0.0)
    with pytest.raises(EnvError, match="the guest has taken no input"):
        QmpInput(client, lambda: (640, 480), None).perform(Action(kind="key", keys=["a"]))


def test_a_qemu_that_does_not_show_its_rings_is_not_waited_for(monitor, client):
    monitor.answers += [[{"return": {}}], [{"error": {"class": "CommandNotFound", "desc": "unknown"}}]]
    QmpInput(client, lambda: (640, 480), None).perform(Action(kind="key", keys=["a"]))
    assert [command["execute"] for command in monitor.commands[1:]] == ["input-send-event", "x-query-virtio"]


def test_after_a_person_every_key_and_button_of_the_machine_is_up(monitor, client):
    QmpInput(client, lambda: (1280, 720), None).let_go()
    events = [event for command in sent(monitor) for event in command]
    assert not any(event["data"]["down"] for event in events)
    keys = [event["data"]["key"]["data"] for event in events if event["type"] == "key"]
    assert len(keys) == len(set(keys))
    assert {"shift", "ctrl", "alt", "meta_l", "shift_r", "ctrl_r", "a", "z", "0", "9", "f12", "spc"} <= {
        *keys
    }
    buttons = [event["data"]["button"] for event in events if event["type"] == "btn"]
    assert {"left", "middle", "right"} <= {*buttons}


def keys_sent(monitor) -> list[tuple[str, bool]]:
    found = [event["data"] for events in sent(monitor) for event in events if event["type"] != "abs"]
    return [(data.get("button") or data["key"]["data"], data["down"]) for data in found]


@pytest.mark.parametrize(
    ("action", "keys"),
    [
        (
            {"kind": "click", "x": 1, "y": 1, "modifiers": ("ctrl",)},
            [("ctrl", True), ("left", True), ("left", False), ("ctrl", False)],
        ),
        ({"kind": "key_down", "keys": ("shift", "a")}, [("shift", True), ("a", True)]),
        ({"kind": "key_up", "keys": ("shift", "a")}, [("a", False), ("shift", False)]),
        (
            {"kind": "key", "keys": ("alt", "Tab"), "presses": 2},
            [("alt", True), *[("tab", True), ("tab", False)] * 2, ("alt", False)],
        ),
        ({"kind": "key", "keys": ("a",), "seconds": 0.01}, [("a", True), ("a", False)]),
        ({"kind": "mouse_down", "button": "right"}, [("right", True)]),
        ({"kind": "right_click", "presses": 2}, [("right", True), ("right", False)] * 2),
    ],
)
def test_modifiers_holds_and_counts_go_out_in_order(monitor, client, action, keys):
    QmpInput(client, lambda: (640, 480), None).perform(Action(**action))
    assert keys_sent(monitor) == keys


def test_a_chord_does_not_end_a_hold(monitor, client):
    console = QmpInput(client, lambda: (640, 480), None)
    for kind, keys in (("key_down", ("shift",)), ("key", ("shift", "a")), ("key_up", ("shift",))):
        console.perform(Action(kind=kind, keys=keys))
    assert keys_sent(monitor) == [("shift", True), ("a", True), ("a", False), ("shift", False)]


def test_text_is_pasted_by_the_guests_clipboard_or_refused(monitor, client):
    copied = []

    def copy(text: str) -> tuple[str, ...]:
        copied.append(text)
        return ("ctrl", "v")

    QmpInput(client, lambda: (640, 480), None, None, copy).perform(Action(kind="paste", text="é"))
    assert copied == ["é"]
    assert keys_sent(monitor) == [("ctrl", True), ("v", True), ("v", False), ("ctrl", False)]
    with pytest.raises(ActionRefused, match="cannot be pasted"):
        QmpInput(client, lambda: (640, 480), None).perform(Action(kind="paste", text="é"))
