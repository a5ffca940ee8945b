"""Provider `remote`: desktops of an env server that speaks Slime-OSWorld's HTTP protocol.

    slot -> /reset (task) -> /step* -> DONE or FAIL -> /evaluate -> /close
The server sets tasks up and scores them; its errors never become rewards, also where it answers reward 0
with an error beside it.
"""

import base64
import binascii
import contextlib
import math
import secrets
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import urlsplit

import redis
from django.conf import settings

from training.actions.errors import ActionTextError
from training.actions.write.pyautogui_program import machine_code, pyautogui_code
from training.contracts.config import RemoteConfig
from training.contracts.types import Action, ActionKind, Task
from training.tasks.task_json import to_osworld
from workers.desktops.console_contract import ActionRefused, require_typable
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.desktop_texts import DesktopTexts
from workers.desktops.frame import Frame
from workers.environments.back_off import BackOff
from workers.environments.contract import AtCapacity, EnvironmentRequest
from workers.environments.decoded_frames import frame_of
from workers.environments.http_transport import Answer, ServerFailed, Transport
from workers.environments.remote.url_slots import UrlSlot, acquire_slot
from workers.environments.secret_values import bearer
from workers.tasks.errors import EvaluatorError, SetupError, TaskErrorKind

OWN_ERRORS = frozenset({"desktop", "setup", "evaluator", "server"})
"""Codes of our server's 5xx answers: it has tried, a repetition of the request changes nothing."""


@dataclass(frozen=True, slots=True)
class SentTexts:
    """Tree and terminal beside a server's screenshot."""

    fields: dict[str, Any]

    def accessibility(self) -> str:
        if tree := self._sent("accessibility_tree"):
            return tree
        raise EnvError("the server sent no accessibility_tree", kind=ErrorKind.GUEST)

    def terminal(self) -> str:
        return self._sent("terminal")

    def _sent(self, name: str) -> str:
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


class RemoteEnvironment:
    """One episode at a time on one URL."""

    provider = "remote"

    def __init__(self, slot: UrlSlot, transport: Transport, request: EnvironmentRequest) -> None:
        assert isinstance(request.knobs, RemoteConfig)
        self._slot = slot
        self._transport = transport
        self._knobs = request.knobs
        self._reads = request.reads
        self._key = request.key or secrets.token_hex(8)
        self._num_requests = 0
        self._episode_id = ""
        self._frame: Frame | None = None
        self._keeps_keys = False
        """True when the server does a request with a known Idempotency-Key only once."""
        self._types_all = False
        """True when it types any text; pyautogui itself, behind other servers, types ASCII."""
        self._is_closed = False

    @classmethod
    def open(cls, request: EnvironmentRequest) -> Self:
        """Take a slot at a URL whose server answers. Raises AtCapacity or EnvError."""
        knobs = request.knobs
        assert isinstance(knobs, RemoteConfig)
        headers = bearer(knobs.token_secret)
        client = redis.Redis.from_url(settings.REDIS_URL)
        failures: list[str] = []
        pauses = {url: BackOff(client, f"{url} {knobs.token_secret}") for url in knobs.urls}
        urls = tuple(url for url in knobs.urls if not pauses[url].remaining()[0])
        if not urls:
            min(pauses.values(), key=lambda pause: pause.remaining()[0]).require_no_pause()
        while urls:
            slot = acquire_slot(client, urls, knobs.slots_per_url)
            transport = Transport(
                slot.url, headers=headers, timeout_s=knobs.request_timeout_s, ca_file=knobs.ca_file
            )
            environment = cls(slot, transport, request)
            try:
                environment._check_health()
                pauses[slot.url].worked()
                return environment
            except EnvError as error:
                environment.close()
                if not isinstance(error, AtCapacity):
                    pauses[slot.url].failed(str(error))
                if error.permanent:
                    raise
                failures.append(str(error))
                urls = tuple(url for url in urls if url != slot.url)
        raise EnvError("no env server can be used: " + "; ".join(failures))

    def _check_health(self) -> None:
        answer = self._transport.call("GET", "/health", repeatable=True)
        if answer.status in (401, 403):
            text = (
                f"{self._slot.url} refuses the token; check the secret {self._knobs.token_secret or '(none)'}"
            )
            raise EnvError(text, permanent=True)
        if answer.status != 200 or answer.fields.get("status") != "ok":
            raise EnvError(f"{self._slot.url} is no env server: /health answered {answer.status}")
        self._keeps_keys = answer.fields.get("idempotency_keys") is True
        self._types_all = answer.fields.get("types_any_text") is True

    # -- what an episode uses ---------------------------------------------------------------

    @property
    def desktop_id(self) -> str:
        """The slot: episodes come and go on it."""
        return f"{urlsplit(self._slot.url).netloc}#{self._slot.number}"[-64:]

    @property
    def is_lost(self) -> bool:
        return self._is_closed or self._slot.lost.is_set()

    def prepare(self, task: Task) -> None:
        """A new episode with its task set up. Raises AtCapacity, SetupError or EnvError."""
        config = {
            "provider_name": self._knobs.provider_name,
            "os_type": self._knobs.os_type,
            "action_space": "pyautogui",
            "screen_size": list(task.screen),
            "headless": True,
            "require_a11y_tree": self._reads.tree,
            "require_terminal": self._reads.terminal,
        }
        body = {"task_config": to_osworld(task), "env_config": config}
        try:
            # The key must not change with the attempt: by it a waiting trajectory keeps its place.
            answer = self._post("/reset", body, timeout_s=self._knobs.reset_timeout_s, key=self._key)
        except ServerFailed as error:
            if error.answer.code == "setup":
                raise SetupError(TaskErrorKind.DESKTOP, error.answer.message) from error
            raise
        if answer.code == "setup":
            raise SetupError(TaskErrorKind.TASK, answer.message)
        fields = self._good(answer, "/reset")
        self._episode_id = str(fields.get("episode_id") or "")
        if not self._episode_id:
            raise EnvError(f"{self._slot.url}: /reset answered no episode_id")
        self._frame = self._frame_in(fields)
        if (self._frame.width, self._frame.height) != task.screen:
            have, want = f"{self._frame.width}x{self._frame.height}", "x".join(map(str, task.screen))
            text = (
                f"the server's screen is {have}, the task needs {want}; import the task set with that screen"
            )
            raise SetupError(TaskErrorKind.TASK, text)

    def observe(self) -> Frame:
        """The screen that the last request brought, else a new one."""
        frame, self._frame = self._frame, None
        if frame is None:
            answer = self._post("/render", {"episode_id": self._episode_id}, repeatable=True)
            frame = self._frame_in(self._good(answer, "/render"))
        return frame

    def act(self, action: Action) -> None:
        require_typable(action)
        self._frame = None
        self._step(self._code(action))

    def _code(self, action: Action) -> str:
        """Raises ActionRefused."""
        if self._types_all:
            return pyautogui_code(action)
        try:
            return machine_code(action)
        except ActionTextError as error:
            raise ActionRefused(str(error)) from error

    def evaluate(self, task: Task, last_action: Action | None) -> float:
        if last_action is not None and last_action.kind is ActionKind.TERMINATE:
            self._step("DONE" if last_action.status == "success" else "FAIL")
        try:
            answer = self._post("/evaluate", {"episode_id": self._episode_id})
            fields = self._good(answer, "/evaluate")
        except ServerFailed as error:
            if error.answer.code in ("", "evaluator"):
                raise EvaluatorError(TaskErrorKind.DESKTOP, error.answer.message) from error
            raise
        except EnvError as error:
            if error.kind is ErrorKind.TASK:
                raise EvaluatorError(TaskErrorKind.TASK, str(error)) from error
            raise
        reward: Any = fields.get("reward")
        is_number = isinstance(reward, int | float) and not isinstance(reward, bool)
        if not is_number or not math.isfinite(reward) or not 0 <= reward <= 1:
            raise EvaluatorError(TaskErrorKind.DESKTOP, f"{self._slot.url} answered the reward {reward!r}")
        return float(reward)

    def reset(self) -> None:
        """Give slot and episode back: others wait for them while nothing is to be done here."""
        self.close()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._episode_id:
            with contextlib.suppress(EnvError):  # the server closes silent episodes by itself
                self._post("/close", {"episode_id": self._episode_id}, repeatable=True)
        self._transport.close()
        self._slot.give_up()

    # -- requests ---------------------------------------------------------------------------

    def _step(self, code: str) -> None:
        body = {"episode_id": self._episode_id, "action": code, "pause": self._knobs.pause_s}
        self._frame = self._frame_in(self._good(self._post("/step", body), "/step"))

    def _post(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout_s: float | None = None,
        key: str = "",
        repeatable: bool = False,
    ) -> Answer:
        self._num_requests += 1
        return self._transport.call(
            "POST",
            path,
            body,
            headers={"Idempotency-Key": key or f"{self._key}-{self._num_requests}"},
            timeout_s=timeout_s,
            repeatable=repeatable or self._keeps_keys,
            may_wait=path == "/reset",
            final=OWN_ERRORS,
        )

    def _good(self, answer: Answer, path: str) -> dict[str, Any]:
        """The fields of a good answer. Raises EnvError, of kind task when the action was refused."""
        where = f"{self._slot.url}{path}"
        if answer.status == 404:
            raise EnvError(f"{where}: {answer.message}; the server was restarted or has closed the episode")
        if answer.status in (401, 403):
            raise EnvError(f"{where}: the token is refused: {answer.message}", permanent=True)
        if answer.status in (400, 422):
            raise EnvError(answer.message, kind=ErrorKind.TASK)
        if answer.status != 200 or not answer.fields:
            raise EnvError(f"{where} answered {answer.status}: {answer.message}")
        if answer.fields.get("error"):  # Slime-OSWorld's own server says so beside a reward of 0
            if path == "/evaluate":
                raise EvaluatorError(TaskErrorKind.DESKTOP, f"{where}: {answer.message}")
            raise EnvError(f"{where}: {answer.message}")
        return answer.fields

    def _frame_in(self, fields: dict[str, Any]) -> Frame:
        encoded = fields.get("screenshot_base64")
        if not isinstance(encoded, str) or not encoded:
            raise EnvError(f"{self._slot.url} sent no screenshot")
        try:
            frame = frame_of(base64.b64decode(encoded, validate=True))
        except binascii.Error as error:
            raise EnvError(f"{self._slot.url} sent a screenshot that is not base64") from error
        return (
            replace(frame, texts=DesktopTexts.read(self._reads, SentTexts(fields))) if self._reads else frame
        )
