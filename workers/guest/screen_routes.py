"""What is on the screen and which window is in front: OSWorld's routes beyond programs and files."""

import asyncio
import configparser
import contextlib
import os
import shlex
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from workers.guest.file_routes import FileRoutes
from workers.guest.http_server import HttpError, Request, Response, Route, json_response
from workers.guest.program_routes import ProgramRoutes
from workers.guest.session_processes import Session
from workers.guest.widgets.reader_process import WidgetReader

if TYPE_CHECKING:
    from workers.guest.window_routes import WindowRoutes

WALLPAPER_CONFIG = ".config/pcmanfm/default/desktop-items-0.conf"


class ScreenRoutes:
    """Routes over screen and windows."""

    def __init__(self, session: Session, programs: ProgramRoutes, files: FileRoutes) -> None:
        self.session = session
        self.programs = programs
        self.files = files
        self.widgets = WidgetReader(programs)
        self._windows: WindowRoutes | None = None
        self._wallpaper = ""

    def routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("GET", "/screenshot"): self.screenshot,
            ("GET", "/accessibility"): self.accessibility,
            ("GET", "/terminal"): self.terminal,
            ("GET", "/platform"): self.platform,
            ("POST", "/screen_size"): self.screen_size,
            ("POST", "/window_size"): self.window_size,
            ("POST", "/wallpaper"): self.wallpaper,
            ("POST", "/setup/change_wallpaper"): self.change_wallpaper,
            ("POST", "/setup/activate_window"): self.activate_window,
            ("POST", "/setup/close_window"): self.close_window,
            ("POST", "/setup/execute_with_verification"): self.execute_with_verification,
        }

    @property
    def windows(self) -> "WindowRoutes":
        """Made on first use: it loads python-xlib, which a sandbox's agent otherwise does without."""
        if self._windows is None:
            from workers.guest.window_routes import ANSWER_LIMIT_S, WindowRoutes

            # 0 is no limit.
            limit_s = 0.0 if "display" in self.session.layout.weakened else ANSWER_LIMIT_S
            self._windows = WindowRoutes(self.session.env["DISPLAY"], limit_s)
        return self._windows

    def forget(self) -> None:
        """Close the connection to the display: a reset leaves nothing open."""
        self._windows = None
        self.widgets.forget()

    # -- looking ----------------------------------------------------------------------------

    async def screenshot(self, _request: Request) -> Response:
        """The screen as PNG, pointer included."""
        return Response(await self.programs.tool("screenshot"), content_type="image/png")

    async def accessibility(self, _request: Request) -> Response:
        """{"AT": XML of all programs' widgets}."""
        self._need_accessibility()
        return json_response({"AT": await self.widgets.read("tree")})

    async def terminal(self, _request: Request) -> Response:
        """{"output": text of the terminal in front, null when there is none that tells}."""
        if not self.session.layout.accessibility:
            return json_response({"status": "success", "output": None})
        return json_response({"status": "success", "output": await self.widgets.read("terminal") or None})

    def _need_accessibility(self) -> None:
        if not self.session.layout.accessibility:
            raise HttpError(500, "accessibility is off on this desktop: its programs tell nothing")

    async def platform(self, _request: Request) -> Response:
        return Response(b"Linux", content_type="text/plain")

    async def screen_size(self, _request: Request) -> Response:
        layout = self.session.layout
        return json_response({"width": layout.width, "height": layout.height})

    # -- windows ----------------------------------------------------------------------------

    async def window_size(self, request: Request) -> Response:
        """Size of the first window whose class contains the form field app_class_name."""
        name = request.form().get("app_class_name", b"").decode()
        window = self.windows.find(name, by_class=True)
        if window is None:
            raise HttpError(404, f"no window of class {name!r}")
        return json_response({"width": window["width"], "height": window["height"]})

    async def activate_window(self, request: Request) -> Response:
        return self._order(request, self.windows.activate_one)

    async def close_window(self, request: Request) -> Response:
        return self._order(request, self.windows.close_one)

    def _order(self, request: Request, order: Callable[[int], Response]) -> Response:
        """{"window_name": part of the title, "strict": the whole title, "by_class": of the class instead}."""
        body = request.json()
        name = str(body.get("window_name") or "")
        how = {"strict": bool(body.get("strict")), "by_class": bool(body.get("by_class"))}
        window = self.windows.find(name, **how) if name else None
        if window is None:
            raise HttpError(404, f"no window {name!r}")
        order(window["window_id"])
        return json_response({"status": "success", "window": window["title"]})

    # -- wallpaper --------------------------------------------------------------------------

    async def wallpaper(self, _request: Request) -> Response:
        """The bytes of the picture on the desktop."""
        config = configparser.ConfigParser(interpolation=None)
        with contextlib.suppress(OSError):
            settings = self.files.inside.read(os.path.join(self.session.layout.home, WALLPAPER_CONFIG))
            config.read_string(settings.decode("utf-8", "replace"))
        # The file manager writes its settings down some time later.
        path = self._wallpaper or config.get("*", "wallpaper", fallback="")
        if not path:
            raise HttpError(404, "this desktop has no wallpaper")
        return self.files.fetch(path, "image/png")

    async def change_wallpaper(self, request: Request) -> Response:
        """Show the picture {"path"} on the desktop."""
        path = self.files.path(str(request.json().get("path", "")))
        if not self.files.inside.exists(path):
            raise HttpError(404, f"no file {path}")
        if not self.session.layout.machine:
            raise HttpError(400, "a sandboxed desktop has no wallpaper")
        command = ["pcmanfm", "--set-wallpaper", path, "--wallpaper-mode=stretch"]
        outcome = await self.programs.run(command, {}, 60.0)
        if outcome.returncode != 0:
            raise HttpError(500, f"the file manager did not take it: {outcome.error.decode()[-200:]}")
        self._wallpaper = path
        return json_response({"status": "success"})

    # -- commands with a condition ----------------------------------------------------------

    async def execute_with_verification(self, request: Request) -> Response:
        """Start a command and wait until {"window_exists", "command_success"} of `verification` hold.

        500 with the last state when they do not within max_wait_time seconds.
        """
        body = request.json()
        wanted = body.get("verification") or {}
        limit_s = float(body.get("max_wait_time") or 10.0)
        pause_s = max(0.05, float(body.get("check_interval") or 1.0))
        process = self.programs.keep_running(self.programs.command_line(body), body)
        deadline = time.monotonic() + limit_s
        attempts = 0
        while True:
            attempts += 1
            state = await self._verify(wanted, limit_s)
            answer = {"verification": state, "attempts": attempts, "pid": process.pid}
            if all(state.values()):
                return json_response({"status": "success", "returncode": process.poll(), **answer})
            if time.monotonic() > deadline:
                message = f"not verified after {limit_s:g} s"
                return json_response({"status": "verification_failed", "message": message, **answer}, 500)
            await asyncio.sleep(pause_s)

    async def _verify(self, wanted: dict, limit_s: float) -> dict[str, bool]:
        state = {}
        if name := wanted.get("window_exists"):
            state["window_exists"] = self.windows.find(str(name)) is not None
        if command := wanted.get("command_success"):
            argv = ["/bin/sh", "-c", command if isinstance(command, str) else shlex.join(command)]
            outcome = await self.programs.run(argv, {}, limit_s)
            state["command_success"] = outcome.returncode == 0
        return state
