"""The lines between the env worker and the child, as types.

worker -> child   {id, call, arguments}                      one at a time
child  -> worker  {id, result} | {id, error: {kind, message}}
child  -> worker  {ask: "revert" | "screenshot"}        during a call; the worker answers {} or {refusal: why}
child  -> worker  {ready: true}          once, when DesktopEnv is imported
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field


class Message(BaseModel):
    """Base of everything on the pipes: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FailureKind(StrEnum):
    """Whose fault an error is."""

    INFRA = "infra"
    """Desktop, library or process broke: the trajectory is errored and re-run."""
    SETUP = "setup"
    """The task's setup failed on a desktop that answers."""
    UNSUPPORTED = "unsupported"
    """A package that this evaluator or step needs is not installed."""
    EVALUATOR = "evaluator"
    """No score can be given; never a reward of 0."""
    ACTION = "action"
    """The desktop refused the action: the agent's mistake, the episode goes on."""


class Failure(Message):
    kind: FailureKind
    message: str


class Open(Message):
    """Arguments of `open`: what DesktopEnv is made with."""

    provider: str
    """"hosted" = our own desktop, see `OsworldProcess.point`; else a provider name of DesktopEnv."""
    downloads: str
    """Folder of downloads that all processes share."""
    checkout: str
    """OSWorld checkout that relative `local_path`s of upload_file are in; "" = none."""
    strict_setup: bool
    console_camera: bool
    """Screenshots come from the worker, by `ask: screenshot`, instead of from the desktop's agent."""
    screen_size: tuple[int, int]
    os_type: str
    enable_proxy: bool = False
    headless: bool
    client_password: str
    region: str | None = None
    path_to_vm: str | None = None
    snapshot_name: str = "init_state"


class Opened(Message):
    address: str
    """host:port of the desktop's server."""


class Prepare(Message):
    task: dict[str, Any]
    """A task in OSWorld's schema: id, instruction, config, evaluator."""
    timezone: str = "UTC"
    """The desktop's, which evaluators reckon with."""
    is_clean: bool
    """True = the desktop was reset already; DesktopEnv need not revert it."""


class NoArguments(Message):
    """No arguments, or an empty result."""


class Read(Message):
    what: Literal["accessibility", "terminal"]


class Text(Message):
    text: str | None
    """None: the machine gave none."""


class Act(Message):
    action: str
    """Python for pyautogui, or WAIT."""
    pause_s: float
    settle_s: float


class Evaluate(Message):
    ending: Literal["DONE", "FAIL", ""]
    """How the agent ended the episode; "" when a limit did."""


class Screenshot(Message):
    screenshot: Base64Bytes = Field(repr=False)


class Score(Message):
    score: float = Field(ge=0, le=1)
