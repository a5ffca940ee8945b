"""Provider `osworld`: xlang-ai's DesktopEnv sets up, drives and scores; the desktop is ours or its own.

One child process with one DesktopEnv per environment. With our desktops the desk host owns the desktop
and resets it; with OSWorld's own providers DesktopEnv reverts its machine itself.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from training.actions.errors import ActionTextError
from training.actions.write.pyautogui_program import machine_code, pyautogui_code
from training.contracts.config import NO_KNOBS, PROVIDERS, OsworldConfig
from training.contracts.types import Action, ActionKind, Task
from training.outgoing.secret_store import SecretError, read_secret
from training.tasks.supported_by.osworld import osworld_reason
from training.tasks.supported_by.runtimes import PROGRAMS, osworld_runtime
from workers.desktops import frame_images
from workers.desktops.console_contract import ActionRefused, require_typable
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.desktop_texts import DesktopTexts
from workers.desktops.frame import Frame
from workers.desktops.screen_settling import wait_until_settled
from workers.environments.contract import EnvironmentRequest
from workers.environments.local import LocalEnvironment
from workers.environments.osworld.child_messages import (
    Act,
    Evaluate,
    NoArguments,
    Open,
    Opened,
    Prepare,
    Score,
    Screenshot,
)
from workers.environments.osworld.child_process import OsworldProcess
from workers.environments.osworld.find_python import find_python
from workers.environments.osworld.own_machine import OwnMachine
from workers.tasks.errors import SetupError, TaskErrorKind
from workers.tasks.prepare_and_score import use_place

NAME = "osworld"
MARGIN_S = 30.0
"""On top of an action's own waiting."""


class OsworldEnvironment:
    """One DesktopEnv in a child process, and the desktop that it drives."""

    provider = NAME

    def __init__(self, request: EnvironmentRequest) -> None:
        """Lease the desktop, start the child, make DesktopEnv. Raises EnvError, leaving nothing behind."""
        assert isinstance(request.knobs, OsworldConfig)
        self._knobs = request.knobs
        self._runtime = osworld_runtime(request.knobs, request.machine_knobs)
        python = find_python(self._knobs.python)
        self._host = self._lease(request)
        self._process: OsworldProcess | None = None
        self._seen: bytes | None = None
        self._reads = request.reads
        self._task: Task | None = None
        """The one that is prepared: DesktopEnv may revert the desktop in the middle of it."""
        self._is_clean = True
        try:
            self._process = OsworldProcess(
                python, settings.DATA_DIR / NAME, pass_on=self._variables(), on_ask=self._asked
            )
            self._point()
            self._process.call("open", self._options(request), Opened, self._knobs.reset_timeout_s)
        except BaseException:
            self.close()
            raise

    def _lease(self, request: EnvironmentRequest) -> LocalEnvironment | None:
        provider = self._knobs.machine_provider
        if not provider:
            return None
        knobs = self._knobs if request.machine_knobs == NO_KNOBS else request.machine_knobs
        request = replace(request, provider=provider, knobs=knobs)
        return LocalEnvironment.open(request, prepares=False)  # DesktopEnv sets tasks up

    def _variables(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self._knobs.pass_variables if name in os.environ}

    def _options(self, request: EnvironmentRequest) -> Open:
        knobs = self._knobs
        return Open(
            provider="hosted" if self._host else knobs.machines,
            downloads=str(Path(knobs.downloads or settings.DATA_DIR / "osworld-downloads").resolve()),
            checkout=str(Path(knobs.checkout).expanduser().resolve()) if knobs.checkout else "",
            strict_setup=knobs.strict_setup,
            # An emulated guest needs 0.3 to 10 s for a picture of itself, its monitor 13 ms.
            console_camera=self._host is not None and PROVIDERS[self._host.provider].is_virtual_machine,
            screen_size=request.screen,
            os_type=knobs.os_type,
            enable_proxy=knobs.enable_proxy,
            headless=knobs.headless,
            client_password=_password(knobs.password_secret),
            region=knobs.region or None,
            path_to_vm=knobs.path_to_vm or None,
            snapshot_name=knobs.snapshot_name,
        )

    # -- the desktop ------------------------------------------------------------------------

    @property
    def desktop_id(self) -> str:
        return self._host.desktop_id if self._host else f"{NAME}-{self._child.process.pid}"

    @property
    def is_lost(self) -> bool:
        return self._process is None or (self._host is not None and self._host.is_lost)

    @property
    def vnc_socket(self) -> str:
        return self._host.vnc_socket if self._host else ""

    def let_go(self) -> None:
        if self._host is not None:
            self._host.let_go()

    @property
    def _child(self) -> OsworldProcess:
        if self._process is None:
            raise EnvError("the OSWorld process was closed")
        return self._process

    def _asked(self, question: str) -> None:
        """DesktopEnv wants something of our provider during a call."""
        if self._host is None:
            raise EnvError(f"OSWorld's own machines cannot be asked to {question}")
        match question:
            case "revert":
                self._host.reset()
                self._point()
            case "screenshot":
                console = self._host.desktop.console
                wait_until_settled(console)  # OSWorld's fixed pauses are made for machines with KVM
                picture = frame_images.png_of(console.image())
                (self._child.folder / "screen.png").write_bytes(picture)
            case _:
                raise EnvError(f"unknown question {question}")

    def _point(self) -> None:
        """Let the child's port lead to the desktop of now; a rebuilt one has another address."""
        if self._host is None:
            return
        self._child.point(self._host.desktop.lease.desktop.endpoints.agent)
        if self._task is not None:
            use_place(self._task, self._host.desktop.agent)

    # -- one episode ------------------------------------------------------------------------

    def prepare(self, task: Task) -> None:
        reason = osworld_reason(
            task, programs=PROGRAMS.get(self._runtime), allow_host_code=self._knobs.allow_host_code
        )
        if reason:
            raise SetupError(TaskErrorKind.UNSUPPORTED, f"{task.task_id}: {reason}")
        if self._host is None and (task.timezone or task.locale):
            message = "machines of OSWorld's own providers keep their image's time zone and locale"
            raise SetupError(TaskErrorKind.UNSUPPORTED, f"{task.task_id}: {message}")
        if self._host is not None and not self._is_clean:
            self.reset()
        self._is_clean, self._task = False, task
        self._point()
        is_clean = self._host is not None
        arguments = Prepare(task=osworld_task(task), timezone=task.timezone or "UTC", is_clean=is_clean)
        self._seen = self._call_for_screenshot("prepare", arguments, self._knobs.reset_timeout_s)

    def observe(self) -> Frame:
        screenshot, self._seen = self._seen, None
        if screenshot is None:
            screenshot = self._call_for_screenshot("observe", NoArguments(), self._knobs.act_timeout_s)
        frame = frame_of(screenshot)
        if not self._reads:
            return frame
        # Our desktops are asked themselves; of its own machines DesktopEnv knows the address.
        source = self._host.desktop.agent if self._host else OwnMachine(self._child)
        return replace(frame, texts=DesktopTexts.read(self._reads, source))

    def act(self, action: Action) -> None:
        knobs = self._knobs
        if action.kind is ActionKind.PASTE and self._host is not None:
            self._host.act(action)  # our desktops have no program behind pyperclip
            self._seen = None
            return
        is_wait = action.kind is ActionKind.WAIT
        # DesktopEnv pauses twice for WAIT: once for the action, once after it.
        pause_s = max(action.seconds, knobs.pause_s) / 2 if is_wait else knobs.pause_s
        require_typable(action)
        arguments = Act(action=self._code(action), pause_s=pause_s, settle_s=knobs.settle_s)
        held_s = 0.0 if is_wait else action.seconds
        timeout_s = knobs.act_timeout_s + held_s + 2 * pause_s + knobs.settle_s + MARGIN_S
        self._seen = self._call_for_screenshot("act", arguments, timeout_s)

    def _code(self, action: Action) -> str:
        """Our desktops have a pyautogui that types any text. Raises ActionRefused."""
        try:
            return action_code(action, types_all=self._host is not None)
        except ActionTextError as error:
            raise ActionRefused(str(error)) from error

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        if self._host is not None:
            self._host.desktop.agent.begin_evaluation()
        arguments = Evaluate(ending=ending_of(last_action))
        return self._child.call("evaluate", arguments, Score, self._knobs.evaluate_timeout_s).score

    def _call_for_screenshot(self, call: str, arguments: Any, timeout_s: float) -> bytes:
        return self._child.call(call, arguments, Screenshot, timeout_s).screenshot

    # -- between episodes -------------------------------------------------------------------

    def reset(self) -> None:
        """Our desktops are reset at once; OSWorld's own machines revert when the next task is prepared."""
        self._seen = self._task = None
        if self._host is not None:
            self._host.reset()
            self._point()
            self._is_clean = True

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()
        host, self._host = self._host, None
        if host is not None:
            host.close()


def osworld_task(task: Task) -> dict[str, Any]:
    """The part of a task that DesktopEnv reads, and the conditions that it was published with."""
    return {
        **task.published,
        "id": task.task_id.replace("/", "_"),
        "instruction": task.instruction,
        "config": list(task.config),
        "evaluator": task.evaluator,
    }


def action_code(action: Action, *, types_all: bool = True) -> str:
    """What DesktopEnv takes: Python for pyautogui, or WAIT. Raises ActionTextError."""
    if action.kind is ActionKind.WAIT:
        return "WAIT"
    return pyautogui_code(action) if types_all else machine_code(action)


def ending_of(last_action: Action | None) -> Any:
    """How OSWorld's agents say the same: DONE, FAIL (the task is infeasible), "" after a limit."""
    if last_action is None or last_action.kind is not ActionKind.TERMINATE:
        return ""
    return "FAIL" if last_action.status == "failure" else "DONE"


def frame_of(screenshot: bytes) -> Frame:
    """A screenshot, PNG or JPEG, as the frame that is stored: equal screens give equal PNGs."""
    try:
        return Frame.of(frame_images.open_png(screenshot))
    except OSError as error:
        raise EnvError(f"the desktop's screenshot is no image: {error}") from error


def _password(secret: str) -> str:
    """Of the desktop's user; "" is OSWorld's default. Raises EnvError."""
    if not secret:
        return ""
    try:
        return read_secret(secret, settings.SECRETS_DIR)
    except SecretError as error:
        message = f"desktops.osworld.password_secret: {error}"
        raise EnvError(message, kind=ErrorKind.TASK, permanent=True) from error
