"""The built image debian-office: the applications of OSWorld's tasks really start, under the tasks' names.

Needs a published image (`make guest-image ARGS=debian-office`); one boot into a template, one clone for all.
Run it as a module after a build: it writes the list of commands by which tasks are judged.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from testing.desk_host_process import running_host
from tests.workers.conftest import ROOT
from training.tasks.supported_by.desktop_programs import OFFICE_COMMANDS, OFFICE_IMAGE
from workers.desktops.contract import DesktopSpec
from workers.desktops.leased_desktop import DesktopEnv
from workers.environments.osworld.child.agent_port_forward import Bridge

pytestmark = [pytest.mark.vm, pytest.mark.timeout(2400)]
IMAGES = Path(os.environ.get("DESKHAND_IMAGES_DIR") or ROOT / "var" / "images")
TEMPLATES = os.environ.get("DESKHAND_TEMPLATES_DIR")
MANIFEST = IMAGES / OFFICE_IMAGE / "image.json"
LIMIT_S = 600.0
"""Under emulation a browser opens in one to five minutes."""


def image_commands() -> list[str]:
    return json.loads(MANIFEST.read_text())["commands"]


@pytest.fixture(scope="module")
def guest() -> Iterator[DesktopEnv]:
    if not MANIFEST.exists():
        pytest.skip(f"no image {OFFICE_IMAGE} in {IMAGES}: run `make guest-image ARGS={OFFICE_IMAGE}`")
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    places = ["--images", str(IMAGES), "--templates", TEMPLATES or str(folder / "templates")]
    try:
        with running_host(folder, *places, "--warm-limit", "0") as client:
            spec = DesktopSpec(width=1280, height=720, image=OFFICE_IMAGE)
            lease = client.acquire("qemu", spec, holder=f"tests-{os.getpid()}", ttl_s=2400)
            with DesktopEnv(client, lease) as env:
                env.reset()
                yield env
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shell(guest: DesktopEnv, command: str) -> str:
    return guest.agent.execute(command, shell=True, timeout_s=LIMIT_S).output


def wait_for(guest: DesktopEnv, command: str) -> str:
    """What the command prints, once it succeeds."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        done = guest.agent.execute(command, shell=True, timeout_s=LIMIT_S)
        if done.returncode == 0:
            return done.output
        assert time.monotonic() < deadline, f"{command}: {done.output} {shell(guest, 'wmctrl -lx')}"
        time.sleep(1.0)


@pytest.mark.skipif(not MANIFEST.exists(), reason="no image")
def test_tasks_are_judged_by_the_commands_of_the_built_image():
    assert json.loads(OFFICE_COMMANDS.read_text()) == image_commands()


@pytest.mark.parametrize(
    ("command", "window"),
    [
        ("gimp", "gimp"),
        ("vlc", "vlc"),
        ("/usr/bin/thunderbird", "Mail.thunderbird"),
        ("nautilus /home/user", "nautilus"),
        ("gnome-terminal --working-directory=/home/user", "gnome-terminal"),
        ("google-chrome", "chrom"),
        ("evince", "evince"),
        ("libreoffice --calc", "libreoffice"),
    ],
)
def test_an_application_opens_its_window(guest, command, window):
    guest.agent.launch(command)
    wait_for(guest, f"wmctrl -lx | grep -i {window}")
    shell(guest, "wmctrl -l | cut -d' ' -f1 | xargs -n1 wmctrl -ic; sleep 3")
    shell(guest, "pkill -9 '^(gimp|vlc|thunderbird|chrome)'")


def test_the_browser_is_found_and_ended_as_osworld_does_it(guest, tmp_path):
    guest.agent.launch(["google-chrome", "--remote-debugging-port=1337", "about:blank"])
    guest.agent.launch(["socat", "tcp-listen:9222,fork", "tcp:localhost:1337"])
    wait_for(guest, "curl -sf http://127.0.0.1:9222/json/version")
    (tmp_path / "address").write_text(guest.lease.desktop.endpoints.agent)
    bridge = Bridge(str(tmp_path / "address"), 9222)
    version = requests.get(f"http://127.0.0.1:{bridge.port}/json/version", timeout=LIMIT_S).json()
    assert version["webSocketDebuggerUrl"].startswith(f"ws://127.0.0.1:{bridge.port}/")
    wait_for(guest, "test -s ~/.config/google-chrome/Default/Preferences")
    shell(guest, "pkill chrome")
    wait_for(guest, "! pgrep chrome")


def test_the_keys_of_ubuntu_open_a_terminal(guest):
    shell(guest, "python -c \"import pyautogui; pyautogui.hotkey('ctrl', 'alt', 't')\"")
    wait_for(guest, "wmctrl -lx | grep -i gnome-terminal")


if __name__ == "__main__":
    OFFICE_COMMANDS.write_text(json.dumps(image_commands()) + "\n")
