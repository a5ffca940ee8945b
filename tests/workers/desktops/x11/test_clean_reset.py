"""Nothing of one trajectory reaches the next: each test dirties a real desktop, resets it and looks."""

from __future__ import annotations

import json
import os

import psutil
import pytest
from Xlib import X, Xatom

from training.contracts.types import Action
from workers.desktops.contract import DesktopSpec
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.x11.window_control import Windows
from workers.processes.process_group import start_ticks

pytestmark = pytest.mark.desktop


def shell(desktop: DesktopEnv, command: str) -> str:
    return desktop.agent.execute(command, shell=True).output.strip()


def programs(desktop: DesktopEnv) -> dict[str, str]:
    """pid -> name of what runs besides the base processes."""
    _, raw = desktop.agent.call("GET", "/health")
    return json.loads(raw)["programs"]


def everything_in(desktop: DesktopEnv) -> str:
    return shell(desktop, "find ~ /tmp /dev/shm $XDG_RUNTIME_DIR /run/desk -mindepth 1 | sort")


def test_a_reset_screen_is_pixel_identical_to_a_fresh_one(desktop):
    fresh = desktop.observe()
    desktop.agent.launch(["xterm"])
    desktop.wait_for_window("xterm")
    assert desktop.observe().sha256 != fresh.sha256
    desktop.reset()
    assert desktop.observe().sha256 == fresh.sha256


def test_files_written_anywhere_are_gone_and_the_skeleton_is_back(desktop):
    before = everything_in(desktop)
    shell(
        desktop,
        "echo x > ~/a; mkdir -p ~/.local/share ~/.config/dconf; echo x > ~/.local/share/recently-used.xbel;"
        "rm -rf ~/.config/gtk-3.0; echo x > /tmp/b; echo x > /dev/shm/c; echo x > $XDG_RUNTIME_DIR/d;"
        "echo x > /run/desk/e; ln -s / ~/root; mkdir ~/locked; echo x > ~/locked/f; chmod 000 ~/locked",
    )
    assert everything_in(desktop) != before
    report = desktop.reset()
    assert not report.rebuilt
    assert everything_in(desktop) == before
    assert "gtk-cursor-blink=0" in desktop.agent.get("~/.config/gtk-3.0/settings.ini").decode()


def test_nothing_outside_the_wiped_folders_is_writable(desktop):
    wiped = "-path /home/user -o -path /tmp -o -path /dev/shm -o -path /run/user/1000 -o -path /run/desk"
    found = shell(
        desktop,
        rf"find / \( {wiped} -o -path /proc -o -path /dev/pts \) -prune -o -type d -writable -print",
    )
    assert found == ""
    assert (
        shell(desktop, "for f in /usr /opt/deskhand /etc /dev /; do touch $f/x 2>/dev/null && echo $f; done")
        == ""
    )


def test_processes_end_even_when_they_hide(desktop):
    before = programs(desktop)
    shell(desktop, "setsid sh -c 'trap \"\" TERM HUP; (sleep 1000 &) ; sleep 1000' >/dev/null 2>&1 &")
    shell(desktop, "(nohup setsid sleep 2000 >/dev/null 2>&1 &)")
    while list(programs(desktop).values()).count("sleep") < 3:
        pass  # the shells answer before their children are there
    report = desktop.reset()
    assert report.killed >= 2
    assert programs(desktop) == before == {}


def test_a_process_that_keeps_forking_does_not_survive(desktop):
    shell(desktop, "sh -c 'while true; do (sleep 5 &) ; sleep 0.01; done' >/dev/null 2>&1 &")
    desktop.reset()
    assert programs(desktop) == {}


def test_windows_close_also_those_that_were_told_to_stay(desktop):
    desktop.agent.launch(["xterm"])
    desktop.wait_for_window("xterm")
    script = (
        "import ctypes; x=ctypes.CDLL('libX11.so.6'); x.XOpenDisplay.restype=ctypes.c_void_p;"
        "d=ctypes.c_void_p(x.XOpenDisplay(None)); x.XSetCloseDownMode(d,1);"
        "x.XDefaultRootWindow.restype=ctypes.c_ulong; r=ctypes.c_ulong(x.XDefaultRootWindow(d));"
        "x.XCreateSimpleWindow.restype=ctypes.c_ulong;"
        "w=x.XCreateSimpleWindow(d,r,5,5,50,50,0,0,255); x.XMapWindow(d,ctypes.c_ulong(w)); x.XSync(d,0)"
    )
    shell(desktop, f'/usr/bin/python3 -c "{script}"')
    while len(desktop.windows()) < 2:  # a window of a client that is gone is still there
        pass
    report = desktop.reset()
    assert not report.rebuilt
    assert desktop.windows() == []


def test_the_clipboard_and_selections_are_empty(desktop):
    desktop.agent.launch(["mousepad"])
    desktop.wait_for_window("Mousepad")
    desktop.act(Action(kind="type", text="a secret"))
    desktop.act(Action(kind="key", keys=("ctrl", "a")))
    desktop.act(Action(kind="key", keys=("ctrl", "c")))
    clipboard = desktop.console.display.display.intern_atom("CLIPBOARD")
    while desktop.console.display.display.get_selection_owner(clipboard) == X.NONE:
        desktop.observe()
    desktop.reset()
    for name in ("CLIPBOARD", "PRIMARY", "SECONDARY"):
        atom = desktop.console.display.display.intern_atom(name)
        assert desktop.console.display.display.get_selection_owner(atom) == X.NONE


def test_keys_locks_and_the_pointer_are_where_they_were(desktop):
    root = desktop.console.display.root
    parked = root.query_pointer()
    desktop.act(Action(kind="move", x=7, y=9))
    keycode = desktop.console.display.display.keysym_to_keycode(0xFFE3)
    desktop.console.display.display.xtest_fake_input(X.KeyPress, keycode)
    desktop.console.display.display.xtest_fake_input(X.ButtonPress, 1)
    desktop.act(Action(kind="key", keys=("capslock",)))
    assert root.query_pointer().mask & (X.ControlMask | X.LockMask | X.Button1Mask)
    desktop.reset()
    now = root.query_pointer()
    assert now.mask == 0
    assert (now.root_x, now.root_y) == (parked.root_x, parked.root_y)
    assert not any(desktop.console.display.display.query_keymap())


def test_the_keyboard_map_is_restored_after_unicode_typing(desktop):
    info = desktop.console.display.display.display.info
    span = (info.min_keycode, info.max_keycode - info.min_keycode + 1)
    before = [list(row) for row in desktop.console.display.display.get_keyboard_mapping(*span)]
    desktop.act(Action(kind="type", text="漢字"))
    assert [list(row) for row in desktop.console.display.display.get_keyboard_mapping(*span)] != before
    desktop.reset()
    assert [list(row) for row in desktop.console.display.display.get_keyboard_mapping(*span)] == before


def test_root_window_properties_do_not_leak(desktop):
    root, display = desktop.console.display.root, desktop.console.display.display
    names = [display.intern_atom(name) for name in ("RESOURCE_MANAGER", "MY_NOTE")]
    for atom in names:
        root.change_property(atom, Xatom.STRING, 8, b"*background: red")
    display.sync()
    desktop.reset()
    assert [root.get_full_property(atom, X.AnyPropertyType) for atom in names] == [None, None]


def test_settings_and_the_session_bus_environment_do_not_leak(desktop):
    environment = shell(desktop, "env | sort")
    shell(
        desktop,
        "dbus-update-activation-environment LEAK=1;"
        "gsettings set org.gnome.desktop.interface font-name 'Mono 30'",
    )
    assert "keyfile" in everything_in(desktop)
    ask_for_id = "dbus-send --print-reply=literal --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId"
    old_bus = shell(desktop, ask_for_id)
    desktop.reset()
    assert shell(desktop, "env | sort") == environment
    assert len(shell(desktop, ask_for_id)) == len(old_bus) > 30
    assert shell(desktop, ask_for_id) != old_bus
    assert "keyfile" not in everything_in(desktop)


def end_from_outside(desktop: DesktopEnv, desk_client, name: str) -> None:
    """What no program in the desktop can do."""
    (row,) = [row for row in desk_client.list() if row.info.desktop_id == desktop.lease.desktop.desktop_id]
    (process,) = [p for p in psutil.Process(row.pid).children(recursive=True) if p.name() == name]
    process.kill()
    while start_ticks(process.pid) is not None:
        pass


def test_the_window_manager_comes_back_when_it_was_killed(desktop, desk_client):
    end_from_outside(desktop, desk_client, "openbox")
    report = desktop.reset()
    assert report.rebuilt
    assert "window manager" in report.reason
    desktop.agent.launch(["xterm"])
    assert desktop.wait_for_window("xterm").window_class == "xterm.XTerm"


@pytest.mark.parametrize(
    "command",
    [
        "rm /tmp/.X11-unix/X0",
        "rm /run/desk/vnc.sock; touch /run/desk/vnc.sock",
        "pkill -9 dbus-daemon; pkill -9 openbox; pkill -9 Xvnc; pkill -9 python3; kill -9 -1",
        "umount /tmp/.X11-unix; mount -t tmpfs x /tmp/.X11-unix; unshare -rm true",
    ],
)
def test_a_program_cannot_damage_the_base_of_its_desktop(desktop, command):
    fresh = desktop.observe()
    shell(desktop, command)
    assert desktop.agent.execute("true").returncode == 0
    assert not desktop.reset().rebuilt
    assert desktop.observe().sha256 == fresh.sha256
    desktop.agent.launch(["xterm"])
    assert desktop.wait_for_window("xterm").window_class == "xterm.XTerm"


def test_a_changed_keyboard_layout_leads_to_a_new_desktop(desktop):
    desktop.observe()
    shell(desktop, "setxkbmap de")
    report = desktop.reset()
    assert report.rebuilt
    assert "keyboard layout was changed" in report.reason
    assert not desktop.reset().rebuilt
    desktop.act(Action(kind="type", text="z"))
    assert desktop.observe().width == 512


def test_files_that_cannot_be_walked_go_like_all_others(desktop):
    # A folder nested beyond what can be walked.
    shell(desktop, "/usr/bin/python3 -c \"import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\"")
    assert "d" in shell(desktop, "ls ~").split()
    assert not desktop.reset().rebuilt
    assert "d" not in shell(desktop, "ls ~").split()


def test_a_command_running_during_a_reset_is_answered_with_an_error(desktop):
    import threading

    from workers.desktops.agent_client import AgentClient
    from workers.desktops.contract import EnvError

    errors = []

    def run() -> None:
        with AgentClient(desktop.lease.desktop.endpoints.agent) as agent:
            try:
                agent.execute("sleep 100")
            except EnvError as exc:
                errors.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    while "sleep" not in programs(desktop).values():
        os.sched_yield()
    desktop.reset()
    thread.join(timeout=60)
    assert len(errors) == 1
    assert "was reset while the command ran" in str(errors[0])


def test_the_window_list_is_empty_right_after_a_reset_with_many_windows(desktop):
    for _ in range(4):
        desktop.agent.launch(["xterm"])
    desktop.wait_for_window("xterm")
    desktop.reset()
    assert Windows(desktop.console.display).all() == []


@pytest.mark.slow
def test_a_desktop_whose_trees_are_read_is_cleaned_and_not_made_anew(desk_client):
    spec = DesktopSpec(width=512, height=384, accessibility=True)
    lease = desk_client.acquire("x11", spec, holder="tests", ttl_s=60)
    with DesktopEnv(desk_client, lease) as env:
        generation = env.lease.desktop.generation
        for _ in range(3):
            env.agent.launch(["mousepad"])
            env.wait_for_window("Mousepad")
            assert "Mousepad" in env.agent.accessibility()
            assert not env.reset().rebuilt
            assert "Mousepad" not in env.agent.accessibility()
        assert env.lease.desktop.generation == generation
