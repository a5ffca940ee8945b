"""Keys of the slow console against a scripted monitor: order, waiting, and a password without a trace."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.contracts.types import Action
from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import Endpoints, EnvError
from workers.desktops.qemu import driverless_console
from workers.desktops.qemu.driverless_console import DriverlessConsole
from workers.desktops.windows.login_keys import Login, secret_typist, type_login

PASSWORD = "Zx-kq7{Q}!"


class Monitor:
    """QEMU's end of the socket: takes keys, and tells that the guest takes them after `delay` looks."""

    def __init__(self, path: Path) -> None:
        self.delay = 0
        self.pressed: list[list[str]] = []
        self.looks = 0
        self.other: list[str] = []
        self._waiting = 0
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        connection.sendall(b'{"QMP": {"version": {}, "capabilities": []}}\n')
        for line in connection.makefile("rb"):
            request = json.loads(line)
            answer = {"id": request["id"], "return": self._answer(request)}
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, request: dict) -> object:
        match request["execute"]:
            case "input-send-event":
                events = [event["data"] for event in request["arguments"]["events"]]
                self.pressed.append([event["key"]["data"] for event in events if event["down"]])
                self._waiting = self.delay
            case "human-monitor-command":
                self.looks += 1
                waits, self._waiting = self._waiting > 0, max(0, self._waiting - 1)
                return f"portb[0x0064] = 0x{0x1D if waits else 0x1C:02x}\r\n"
            case other:
                self.other.append(other)
        return {}

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def monitor(short_dir: Path) -> Iterator[Monitor]:
    server = Monitor(short_dir / "console")
    yield server
    server.close()


@pytest.fixture
def console(monitor: Monitor, short_dir: Path) -> Iterator[DriverlessConsole]:
    console = DriverlessConsole(Endpoints(console="qmp-slow", qmp=str(short_dir / "console")))
    yield console
    console.close()


def test_every_key_waits_until_the_guest_has_taken_the_one_before(console, monitor):
    monitor.delay = 4
    console.perform(Action(kind="type", text="a?\n"))
    assert monitor.pressed == [["a"], ["shift", "slash"], ["ret"]]
    assert monitor.looks == 3 * (4 + driverless_console.EMPTY_LOOKS)


def test_a_guest_that_takes_no_key_is_an_error_and_not_a_silent_loss(console, monitor, monkeypatch):
    monkeypatch.setattr(driverless_console, "TAKEN_LIMIT_S", 0.05)
    monitor.delay = 10_000
    with pytest.raises(EnvError, match="taken no key"):
        console.perform(Action(kind="key", keys=("Return",)))


def test_a_letter_that_no_key_has_is_refused_without_being_named(console, monitor):
    with pytest.raises(ActionRefused) as caught:
        console.type_char("\u00fc")
    assert "\u00fc" not in str(caught.value)
    assert monitor.pressed == []


def test_a_password_is_typed_but_in_no_log_of_any_level(console, monitor, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    login = Login(secret="windows-admin", steps=("sendkey ctrl-alt-delete", "password", "sendkey ret"))
    type_login(login, console.perform, secret_typist(PASSWORD, console.type_char, login.secret))
    assert monitor.pressed[0] == ["ctrl", "alt", "delete"]
    assert len(monitor.pressed) == len(PASSWORD) + 2
    assert monitor.pressed[1] == ["shift", "z"]
    out, err = capfd.readouterr()
    for text in (caplog.text, out, err, repr(login), login.model_dump_json(), repr(console)):
        assert PASSWORD not in text
        assert "qcode" not in text
