"""Where the machine lacks something, the provider degrades and says so; still on real X servers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil

import psutil
import pytest

from training.contracts.types import Action
from workers.desktops import frame_images
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.x11 import sandbox
from workers.desktops.x11.display_connection import X11Display
from workers.desktops.x11.provider import X11Provider
from workers.desktops.x11.window_control import Windows
from workers.desktops.x11.xtest_input import X11Input
from workers.guest import session_processes
from workers.processes.process_group import start_ticks

pytestmark = pytest.mark.desktop


async def test_without_a_sandbox_a_desktop_still_starts_acts_resets_and_ends_without_orphans(short_dir):
    provider = X11Provider(force_plain=True)
    health = provider.probe()
    assert health.usable
    assert health.mode == "plain processes, Xvnc"
    assert "not isolated" in health.reasons[0]

    desktop = await provider.create("plain", DesktopSpec(), short_dir / "p")
    members = [psutil.Process(desktop.pid), *psutil.Process(desktop.pid).children(recursive=True)]
    display = X11Display(desktop.endpoints.display)
    try:
        assert desktop.endpoints.home == str(short_dir / "p" / "home")
        fresh = frame_images.digest(frame_images.image_of(display.pixels(), 512, 384))
        with AgentClient(desktop.endpoints.agent) as agent:
            agent.put("/home/user/mine.txt", b"x")
            assert (short_dir / "p" / "home" / "mine.txt").read_bytes() == b"x"
            agent.execute("setsid sleep 1000 >/dev/null 2>&1 &", shell=True)
            agent.launch(["xterm"])
            while Windows(display).find("xterm") is None:
                await asyncio.sleep(0.02)
        X11Input(display).perform(Action(kind="move", x=1, y=1))
        report = await desktop.reset()
        assert report.killed >= 2
        assert os.listdir(short_dir / "p" / "home") == [".config"]
        assert Windows(display).all() == []
        assert frame_images.digest(frame_images.image_of(display.pixels(), 512, 384)) == fresh
    finally:
        display.close()
        await desktop.destroy()
    assert all(start_ticks(process.pid) is None for process in members)
    assert not (short_dir / "p").exists()


def test_a_checkout_that_the_sandbox_cannot_show_is_named_with_what_to_do(monkeypatch, tmp_path):
    if not X11Provider().is_sandboxed:
        pytest.skip("bubblewrap does not work on this machine: no sandbox at all")
    monkeypatch.setattr(sandbox, "GUEST", tmp_path / "closed")
    problem = sandbox.sandbox_problem.__wrapped__()
    assert f"{tmp_path / 'closed'} cannot be shown to desktops" in problem
    assert "chmod a+rX the checkout and what is above it" in problem


def test_bubblewrap_is_started_from_where_it_was_found(monkeypatch, tmp_path):
    """Desktops get a PATH of their own: a name alone was "not found" on a host with a private bubblewrap."""
    found = tmp_path / "bwrap"
    found.symlink_to(shutil.which("bwrap") or "/bin/false")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert sandbox.sandbox_argv(tmp_path, DesktopSpec())[0] == str(found)


def test_without_xvnc_the_display_is_xvfb_and_health_says_that_vnc_is_missing(monkeypatch):
    layout = session_processes.Layout("/h", "/t", "/r", "/run", "/s", "/w", 512, 384, 0)
    assert session_processes.x_server_argv(layout, 5)[0] == "Xvnc"
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "Xvnc" else which(name))
    argv = session_processes.x_server_argv(layout, 5)
    assert argv[:5] == ["Xvfb", ":0", "-screen", "0", "512x384x24"]
    health = X11Provider().probe()
    assert "Xvnc is not installed: desktops have no VNC" in health.reasons
    assert "apt-get install tigervnc-standalone-server" in health.remedies


async def test_a_desktop_that_cannot_start_says_why_and_leaves_nothing(short_dir, monkeypatch):
    monkeypatch.setattr("workers.desktops.x11.desktop.SYSTEM_PYTHON", "/usr/bin/false")
    with pytest.raises(EnvError, match="the desktop did not start: it ended while starting"):
        await X11Provider().create("bad", DesktopSpec(), short_dir / "p")
    assert not (short_dir / "p").exists()


async def test_the_log_of_a_failing_x_server_reaches_the_error(short_dir, monkeypatch):
    write_text = type(short_dir).write_text

    def spoil(path, text, *arguments, **options):
        """A layout that no X server accepts."""
        if path.name == "layout.json":
            text = json.dumps({**json.loads(text), "width": -5})
        return write_text(path, text, *arguments, **options)

    monkeypatch.setattr(type(short_dir), "write_text", spoil)
    with pytest.raises(
        EnvError, match="Xvnc did not start; see the desktop's log. Log: .*Couldn't add screen"
    ):
        await X11Provider().create("bad", DesktopSpec(), short_dir / "p")
    assert not (short_dir / "p").exists()


async def test_plain_processes_need_a_short_folder_and_say_so(short_dir):
    deep = short_dir / ("x" * 120)
    with pytest.raises(EnvError, match="use a shorter --state-dir") as caught:
        await X11Provider(force_plain=True).create("deep", DesktopSpec(), deep)
    assert caught.value.permanent
    assert not deep.exists()
