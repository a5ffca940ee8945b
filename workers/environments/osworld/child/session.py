"""One DesktopEnv and the calls on it.

opened -> prepared -> (observe, act)* -> scored -> prepared ...
"""

import base64
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import desktop_env.controllers.setup as setup_controller
import desktop_env.desktop_env as library
from desktop_env.desktop_env import DesktopEnv

from workers.environments.osworld.child import missing_packages
from workers.environments.osworld.child.agent_port_forward import Bridge
from workers.environments.osworld.child.answer_watch import RecordedAnswers
from workers.environments.osworld.child.download_cache import DamagedFile, Downloads
from workers.environments.osworld.child.failures import Failure
from workers.environments.osworld.child.hosted_provider import HostedManager, HostedProvider, Ports
from workers.environments.osworld.child.local_uploads import local_uploads

RETRY_S = 0.2
"""Between the library's three tries; its own 5 s make every missing file cost 15 s."""
SCREENSHOT = os.path.abspath("screen.png")
"""Where the parent puts it; some evaluators change the folder."""
HOSTED_ATTEMPTS = 1
"""Of a whole reset."""
HOSTED_TRIES = 2
"""Of reaching the desktop's server, 5 s apart."""
SETTLE_PAUSE_S = 0.08
HOSTED_ADDRESS = "desktop.address"
"""File in this folder; see `bridge`."""
BROWSER_PORT, PLAYER_PORT = 9222, 8080
"""In the desktop, as OSWorld's tasks and image set them."""
CLEAN_AT_START = "docker"
"""The library refuses unknown names; of the known ones this starts clean and needs no account."""


class Env(DesktopEnv):  # type: ignore[misc]
    """The library's environment with a shorter pause between its retries, and perhaps another camera."""

    camera: Callable[[], bytes] | None = None
    is_hosted = False

    def _start_emulator(self) -> None:
        super()._start_emulator()
        self.controller.retry_interval = RETRY_S
        if self.is_hosted:
            read = self.controller.get_accessibility_tree
            self.controller.get_accessibility_tree = lambda: with_chromes_name(read())
        if self.camera is not None:
            self.controller.get_screenshot = self.camera


class Session:
    """Answers the calls of the parent. `ask` reaches back to it during a call."""

    def __init__(self, traffic: RecordedAnswers, ask: Callable[[str], None]) -> None:
        self._traffic = traffic
        self._ask = ask
        self._env: Env | None = None
        self._task: dict[str, Any] = {}
        self._phase = "closed"
        self._strict = True
        self._is_hosted = False
        self._checkout = Path()
        self._downloads = Downloads(Path("cache").resolve(), Path("kept").resolve())

    def calls(self) -> dict[str, Callable[..., dict[str, Any]]]:
        return {
            "open": self.open,
            "prepare": self.prepare,
            "observe": self.observe,
            "read": self.read,
            "act": self.act,
            "evaluate": self.evaluate,
            "close": self.close,
        }

    # -- life -------------------------------------------------------------------------------

    def open(
        self,
        provider: str,
        downloads: str,
        checkout: str,
        strict_setup: bool,
        console_camera: bool,
        **options: Any,
    ) -> dict[str, Any]:
        """Make the environment; provider "hosted" is our own desktop behind HOSTED_ADDRESS."""
        self._strict = strict_setup
        self._checkout = Path(checkout or ".").resolve()
        self._downloads = Downloads(Path("cache").resolve(), Path(downloads).resolve())
        self._is_hosted = Env.is_hosted = provider == "hosted"
        if self._is_hosted:
            inner = (0, BROWSER_PORT, PLAYER_PORT)
            ports = Ports(*(Bridge(HOSTED_ADDRESS, port).port for port in inner))
            hosted = HostedProvider(ports, self._ask)
            library.create_vm_manager_and_provider = lambda *_, **__: (HostedManager(), hosted)
            # Our desktops are up when they are handed out: the library's minutes of waiting for a boot
            # would only delay the news that one was lost.
            library.MAX_RETRIES, setup_controller.MAX_RETRIES = HOSTED_ATTEMPTS, HOSTED_TRIES
        if console_camera:
            Env.camera = staticmethod(self._photograph)
        try:
            self._env = Env(
                provider_name=CLEAN_AT_START if self._is_hosted else provider,
                cache_dir=str(Path("cache").resolve()),
                action_space="pyautogui",
                require_a11y_tree=False,
                **options,
            )
        except Exception as error:
            raise self._blamed("infra", error) from error
        self._phase = "opened"
        return {"address": self._address()}

    def _photograph(self) -> bytes:
        """The screen as the parent sees it by the machine's monitor."""
        self._ask("screenshot")
        return Path(SCREENSHOT).read_bytes()

    def _address(self) -> str:
        """The desktop's server now; it may change with every revert."""
        env = self._environment()
        self._traffic.address = f"{env.vm_ip}:{env.server_port}"
        return self._traffic.address

    def _environment(self) -> Env:
        if self._env is None:
            raise Failure("infra", "no environment is open")
        return self._env

    def close(self) -> dict[str, Any]:
        env, self._env, self._phase = self._env, None, "closed"
        if env is not None:
            env.close()
        return {}

    # -- one episode ------------------------------------------------------------------------

    def prepare(self, task: dict[str, Any], is_clean: bool, timezone: str) -> dict[str, Any]:
        """Reset, run the task's setup, and see the first screen."""
        env = self._environment()
        os.environ["TZ"] = timezone
        time.tzset()
        if is_clean:
            env.is_environment_used = False
        self._phase, self._task = "opened", task
        try:
            self._downloads.lay_out(task)
        except DamagedFile as error:
            raise Failure("setup", str(error)) from error
        uploads = Path("cache").resolve() / "inline"
        config = local_uploads(task.get("config", []), self._checkout, uploads)
        try:
            self._address()
            observation = env.reset(task_config={**task, "config": config})
        except Exception as error:
            raise self._blamed("setup", error) from error
        self._address()
        self._must_answer()
        if self._strict and self._traffic.refused:
            raise Failure("setup", "; ".join(self._traffic.refused))
        self._downloads.keep(task)
        self._phase = "prepared"
        return self._seen(observation)

    def observe(self) -> dict[str, Any]:
        """The screen now."""
        return self._seen(self._environment()._get_obs())

    def read(self, what: str) -> dict[str, Any]:
        """The accessibility tree or the terminal, as the library's own observation has it."""
        controller = self._environment().controller
        if what == "accessibility":
            return {"text": controller.get_accessibility_tree()}
        return {"text": controller.get_terminal_output() or ""}

    def act(self, action: str, pause_s: float, settle_s: float) -> dict[str, Any]:
        """Do one action, wait `pause_s`, then until two screens are equal but at most `settle_s`."""
        env = self._environment()
        observation = env.step(action, pause=pause_s)[0]
        self._must_answer()
        done = self._traffic.executed
        if done.get("returncode"):
            lines = str(done.get("error") or done.get("output") or "").strip().splitlines()
            raise Failure("action", lines[-1] if lines else f"exit status {done['returncode']}")
        deadline = time.monotonic() + settle_s
        while observation["screenshot"] is not None and time.monotonic() < deadline:
            time.sleep(SETTLE_PAUSE_S)
            before, observation = observation, env._get_obs()
            if before["screenshot"] == observation["screenshot"]:
                break
        return self._seen(observation)

    def evaluate(self, ending: str) -> dict[str, Any]:
        """The task's score; once per episode. `ending` (DONE, FAIL or "") is stepped first."""
        if self._phase != "prepared":
            raise Failure("evaluator", f"the environment is {self._phase}: prepare a task before each score")
        env = self._environment()
        self._phase = "scored"
        missing_packages.used.clear()
        try:
            if ending:
                env.step(ending, pause=0)
            score = env.evaluate()
        except Exception as error:
            raise self._blamed("evaluator", error) from error
        self._must_answer()
        if missing_packages.used:
            raise Failure("unsupported", missing_message(missing_packages.used[0]))
        self._downloads.keep(self._task)
        return {"score": checked(score)}

    # -- errors -----------------------------------------------------------------------------

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        screenshot = observation["screenshot"]
        if screenshot is None:
            raise Failure("infra", f"the desktop gave no screenshot; {self._traffic.lost or 'see the log'}")
        return {"screenshot": base64.b64encode(screenshot).decode()}

    def _must_answer(self) -> None:
        """A desktop whose last request got no answer is lost, whatever the library made of it."""
        if self._traffic.lost:
            raise Failure("infra", f"the desktop does not answer: {self._traffic.lost}")

    def _blamed(self, kind: str, error: Exception) -> Failure:
        """`error` of the library as a failure of the right kind."""
        if isinstance(error, Failure):
            return error
        if self._traffic.lost:
            return Failure("infra", f"the desktop does not answer: {self._traffic.lost}")
        if missing_packages.used:
            return Failure("unsupported", missing_message(missing_packages.used[0]))
        return Failure(kind, f"{type(error).__name__}: {error}")


def with_chromes_name(tree: str | None) -> str | None:
    """Evaluators look for the browser as Google Chrome; our desktops have Chromium, under Chrome's name."""
    return tree and tree.replace('<application name="Chromium"', '<application name="Google Chrome"')


def missing_message(package: str) -> str:
    return f"OSWorld needs the package {package} for this task; install a higher level: make osworld-env"


def checked(score: object) -> float:
    """A score in [0, 1]; metrics answer bools, ints, floats and numpy's numbers."""
    try:
        value = float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Failure("evaluator", f"the evaluator answered {score!r} instead of a number") from error
    if math.isnan(value) or not 0.0 <= value <= 1.0:
        raise Failure("evaluator", f"the evaluator answered {value}, which is not in [0, 1]")
    return value
