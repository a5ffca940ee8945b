"""The base processes of a desktop: X server, session bus, window manager, in a machine also a panel.

They are started from the agent's main thread only: each is ended with the THREAD that started it.
Everything else in the desktop belongs to the trajectory and is ended by a reset.
"""

import contextlib
import locale as libc_locale
import os
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field

from workers.guest import kernel_calls, xorg_config
from workers.guest.kernel_calls import die_with_parent
from workers.guest.machine_space import MachineSpace
from workers.guest.program_space import Door, ProgramSpace
from workers.guest.session_layout import Layout

SHIM = os.path.join(os.path.dirname(__file__), "shim")
"""Modules that programs in a desktop may import: pyautogui."""
START_LIMIT_S = 300.0
"""Only for one that hangs: one that ends is noticed at once, and a desktop's maker has a limit of its own."""
DEFAULT_PLACE = {"TZ": "UTC", "LANG": "C.UTF-8"}
"""Every desktop's time zone and locale, whatever its host has; a task may name others (`use_place`)."""
ZONES = "/usr/share/zoneinfo"
ACCESSIBLE = {"GTK_MODULES": "gail:atk-bridge", "QT_ACCESSIBILITY": "1", "SAL_USE_VCLPLUGIN": "gtk3"}


class SessionError(Exception):
    """Raised when a base process does not start; the message names it and its last words."""


def require_place(timezone: str, locale: str) -> None:
    """Raises ValueError when this desktop's system lacks one of them."""
    parts = timezone.split("/")
    if timezone != DEFAULT_PLACE["TZ"] and (".." in parts or not os.path.isfile(os.path.join(ZONES, *parts))):
        raise ValueError(f"timezone: this desktop's system has no {timezone!r}")
    usual = libc_locale.setlocale(libc_locale.LC_ALL)
    try:
        libc_locale.setlocale(libc_locale.LC_ALL, locale)
    except libc_locale.Error as exc:
        raise ValueError(f"locale: this desktop's system has no {locale!r}") from exc
    finally:
        libc_locale.setlocale(libc_locale.LC_ALL, usual)


def x_server_argv(layout: Layout, display_fd: int) -> list[str]:
    """Xorg in a machine; else Xvnc (display and VNC in one process), or Xvfb where it is not installed."""
    if layout.machine:
        return xorg_config.argv(layout.run_dir, display_fd)
    number = [] if layout.display is None else [f":{layout.display}"]
    common = ["-ac", "-noreset", "-nolisten", "tcp", "-displayfd", str(display_fd), "-s", "0", "-dpms"]
    # GLX costs 15 MB private memory per desktop and nothing here draws with it.
    common += ["-extension", "GLX"]
    if shutil.which("Xvnc"):
        # Else programs could refuse people's keys for ever, by the server's own extension.
        common += [] if "display" in layout.weakened else ["-AllowOverride="]
        return [
            "Xvnc", *number, "-geometry", f"{layout.width}x{layout.height}", "-depth", "24",
            "-SecurityTypes", "None", "-rfbunixpath", layout.vnc_socket, "-rfbunixmode", "0600",
            "-rfbport", "-1", "-AlwaysShared", "-AcceptSetDesktopSize=0", *common,
        ]  # fmt: skip
    screen = f"{layout.width}x{layout.height}x24"
    return ["Xvfb", *number, "-screen", "0", screen, *common]


def read_line(read_end: int, timeout_s: float) -> str:
    """One line from a pipe, which is then closed; "" when none came.

    Up to the newline: the X server writes the number and the newline apart, and dies of a closed pipe.
    """
    text = b""
    deadline = time.monotonic() + timeout_s
    with os.fdopen(read_end, "rb", buffering=0) as pipe:
        while not text.endswith(b"\n") and (left := deadline - time.monotonic()) > 0:
            if not select.select([pipe], [], [], left)[0]:
                break
            chunk = pipe.read(256)
            if not chunk:
                break
            text += chunk
    return text.decode().strip()


@dataclass
class Session:
    """Starts and watches the base processes."""

    layout: Layout
    env: dict[str, str] = field(default_factory=dict)
    base: dict[str, subprocess.Popen] = field(default_factory=dict)
    wm_ended: bool = False
    """A program killed the window manager; the next one starts, but a reset rebuilds the desktop."""

    space: ProgramSpace | MachineSpace | None = None
    """Where programs and the bus are; None = beside the agent."""
    spare: ProgramSpace | None = None
    """The next one, made ahead: a reset only has to end the present one."""

    @property
    def door(self) -> Door | None:
        """To the programs' space, if there is one."""
        return self.space.door if self.space else None

    def start_display(self) -> None:
        """The X server, which in a machine needs root."""
        self.env = self.base_environment()
        number = self._start_x_server()
        self.env["DISPLAY"] = f":{number}"

    def use_place(self, timezone: str, locale: str) -> None:
        """Time zone and locale of every program from now on; "" = the usual one. Raises ValueError."""
        chosen = {"TZ": timezone, "LANG": locale}
        place = {name: chosen[name] or usual for name, usual in DEFAULT_PLACE.items()}
        require_place(place["TZ"], place["LANG"])
        if place.items() <= self.env.items():
            return
        self.env |= place
        if self.layout.machine:  # these started with the machine, and start programs themselves
            for name in ("wm", "desktop", "panel"):
                self.stop(name)
            self.start_shell()

    def start_programs(self) -> None:
        """Everything else, as the desktop's user; with the display about 0.2 s."""
        if "bus" not in self.base:
            self.start_bus()
        self.start_a11y()
        self.start_shell()

    def start_shell(self) -> None:
        """Window manager, and in a machine its desktop and panel."""
        self.start_window_manager()
        if self.layout.machine:
            self.base["desktop"] = self._spawn_inside(["pcmanfm", "--desktop"], self.door)
            self.base["panel"] = self._spawn_inside(["tint2"], self.door)

    def base_environment(self) -> dict[str, str]:
        """The environment of every program in the desktop; the same after each reset."""
        layout = self.layout
        shared = {
            "HOME": layout.home,
            "USER": "user",
            "LOGNAME": "user",
            "SHELL": "/bin/bash",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/games",
            **DEFAULT_PLACE,
            "TMPDIR": layout.tmp,
            "XDG_RUNTIME_DIR": layout.runtime_dir,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={layout.runtime_dir}/bus",
            # Settings in plain files: no dconf process, and wiping HOME is enough.
            "GSETTINGS_BACKEND": "keyfile",
            "GIO_USE_VFS": "local",
            "GIO_USE_VOLUME_MONITOR": "unix",
            "GTK_OVERLAY_SCROLLING": "0",
            "GDK_BACKEND": "x11",
            "PYTHONPATH": SHIM,
        }
        return shared | (ACCESSIBLE if layout.accessibility else {"NO_AT_BRIDGE": "1"})

    def _start_x_server(self) -> int:
        read_end, write_end = os.pipe()
        argv = x_server_argv(self.layout, write_end)
        self.base["x"] = self._spawn(argv, pass_fds=(write_end,))
        os.close(write_end)
        number = read_line(read_end, START_LIMIT_S)
        if not number.isdigit():
            raise SessionError(f"{argv[0]} did not start; see the desktop's log")
        return int(number)

    def begin_spare(self) -> ProgramSpace:
        """Begin to make the next space; does not wait for it. Raises OSError."""
        self.spare = self.spare or ProgramSpace(self.layout)
        return self.spare

    def finish_spare(self) -> ProgramSpace:
        """The next space, ready, with a session bus. Raises OSError or SessionError."""
        space = self.begin_spare()
        door = space.wait_ready()
        space.bus = space.bus or self._start_bus(door)
        if self.layout.accessibility:
            space.a11y = space.a11y or self._start_a11y(door)
        return space

    def enter_next_space(self) -> ProgramSpace:
        """Programs are born there from now on; returns it. Raises OSError or SessionError."""
        space, self.spare = self.finish_spare(), None
        assert space.bus is not None
        self.space, self.base["bus"] = space, space.bus
        if space.a11y is not None:
            self.base["a11y"] = space.a11y
        return space

    def start_bus(self) -> None:
        """(Re)start the session bus; a fresh one knows no activation environment of the past."""
        self.base["bus"] = self._start_bus(self.door)

    def _start_bus(self, door: "Door | None") -> subprocess.Popen:
        address_path = os.path.join(self.layout.runtime_dir, "bus")
        if door is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address_path)
        read_end, write_end = os.pipe()
        bus = self._spawn_inside(
            ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--nosyslog",
             f"--address=unix:path={address_path}", f"--print-address={write_end}"],
            door, pass_fds=(write_end,),
        )  # fmt: skip
        os.close(write_end)
        if not read_line(read_end, START_LIMIT_S):
            raise SessionError("dbus-daemon did not start; see the desktop's log")
        return bus

    def start_a11y(self) -> None:
        """The accessibility bus, where programs publish their widgets and there is none yet."""
        if self.layout.accessibility and "a11y" not in self.base:
            self.base["a11y"] = self._start_a11y(self.door)

    def _start_a11y(self, door: "Door | None") -> subprocess.Popen:
        """Without the display: the launcher would name its bus on the root window, which all spaces share."""
        argv = ["env", "-u", "DISPLAY", "/usr/libexec/at-spi-bus-launcher", "--launch-immediately"]
        return self._spawn_inside(argv, door)

    def start_window_manager(self) -> None:
        """(Re)start openbox from the read-only config, so that programs cannot change it."""
        argv = ["openbox", "--sm-disable", "--config-file", self.layout.wm_config]
        # A machine's can start programs, by its menu; and a machine is not cleaned but replaced.
        self.base["wm"] = self._spawn_inside(argv, self.door if self.layout.machine else None)

    def _spawn(self, argv: list[str], pass_fds: tuple[int, ...] = ()) -> subprocess.Popen:
        return subprocess.Popen(
            argv,
            env=self.env,
            cwd=self.layout.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=pass_fds,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def _spawn_inside(
        self, argv: list[str], door: "Door | None", pass_fds: tuple[int, ...] = ()
    ) -> subprocess.Popen:
        """Start what a trajectory's programs may do with as they please."""
        if door is None:
            return self._spawn(argv, pass_fds)
        with kernel_calls.children_go_to(door.first):
            return subprocess.Popen(
                argv,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # A machine's is its console, which the host writes to its own disk.
                stderr=subprocess.DEVNULL if self.layout.machine else None,
                pass_fds=pass_fds,
                start_new_session=True,
                preexec_fn=lambda: door.pass_through(self.layout.home),
            )

    def base_pids(self) -> set[int]:
        """Pids of the living base processes."""
        return {p.pid for p in self.base.values() if p.poll() is None}

    def stop(self, name: str) -> None:
        """End one base process and wait for it."""
        process = self.base.pop(name, None)
        if process is not None and process.poll() is None:
            process.kill()
            process.wait(timeout=5)
