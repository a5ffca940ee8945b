"""What the protocols share: observations, errors, and reading a request's fields."""

import base64
import json
import math
from typing import Any

from starlette.responses import JSONResponse

from training.contracts.types import Task
from training.tasks.task_json import LoadError, task_from_osworld
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.desktop_texts import Reads
from workers.desktops.frame import Frame
from workers.env_server.episodes import Episode, UnknownEpisode
from workers.environments.contract import AtCapacity
from workers.tasks.errors import TaskError, TaskErrorKind

Fields = dict[str, Any]
MAX_PAUSE_S = 60.0


class BadRequest(Exception):
    """Raised when a field is missing or wrong; the message names it."""


def read_fields(body: str | bytes) -> Fields:
    """The JSON object of a message; "" is an empty one. Raises BadRequest for what no answer could repeat."""
    try:
        fields = json.loads(body) if body else {}
        # Neither NaN nor half of a surrogate pair: no answer and no log line could hold them.
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError as error:
        raise BadRequest("the body is nested too deep") from error
    except ValueError as error:
        raise BadRequest(f"the body is not JSON: {ascii(str(error))[:200]}") from error
    if not isinstance(fields, dict):
        raise BadRequest("the body must be a JSON object")
    return fields


def observation(episode: Episode, frame: Frame, picture: str) -> Fields:
    """An observation; `picture` is the protocol's name of the base64 PNG.

    Texts are "" and never null: clients measure their length. They are so, too, where they were not requested
    and where they could not be read.
    """
    return {
        picture: base64.b64encode(frame.png).decode(),
        **texts_of(frame),
        "instruction": episode.task.instruction if episode.task else "",
    }


def texts_of(frame: Frame) -> Fields:
    """Tree and terminal of an observation."""
    tree, terminal = frame.texts.tree, frame.texts.terminal
    return {
        "accessibility_tree": (tree.text if tree else None) or "",
        "terminal": (terminal.text if terminal else None) or "",
    }


def reads_of(config: Fields) -> Reads:
    """Which texts the client wants with each screenshot."""
    wanted = [config.get(name, False) for name in ("require_a11y_tree", "require_terminal")]
    if not all(isinstance(one, bool) for one in wanted):
        raise BadRequest("require_a11y_tree, require_terminal: true or false")
    return Reads(*wanted)


def task_of(fields: Fields, screen: tuple[int, int]) -> Task:
    """The task of a request; `screen` is the desktop's, unless the task names its own."""
    try:
        return task_from_osworld(fields.get("task_config"), where="task_config", screen=screen)
    except LoadError as error:
        raise BadRequest(str(error)) from error


def screen_of(config: Fields, task_config: Any, default: tuple[int, int]) -> tuple[int, int]:
    """Which screen an episode gets: the task's own, else what the client asks for, else the server's."""
    if not isinstance(config, dict):
        raise BadRequest("env_config: an object is needed")
    own = task_config.get("screen") if isinstance(task_config, dict) else None
    wanted = own or config.get("screen_size") or default
    if not (
        isinstance(wanted, list | tuple)
        and len(wanted) == 2
        and all(type(side) is int for side in wanted)
        and 160 <= wanted[0] <= 1920
        and 120 <= wanted[1] <= 1080
    ):
        raise BadRequest("screen_size: [width, height] from [160, 120] to [1920, 1080]")
    return wanted[0], wanted[1]


def pause_of(fields: Fields, default: float) -> float:
    """The protocol's pause after an action, seconds."""
    return seconds_of(fields, "pause", default, MAX_PAUSE_S)


def seconds_of(fields: Fields, name: str, default: float, most: float) -> float:
    """Seconds from 0 to `most`."""
    value = fields.get(name, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= most:
        raise BadRequest(f"{name}: seconds from 0 to {most:g}")
    return float(value)


def text_of(fields: Fields, name: str) -> str:
    """A field that must be a non-empty text."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{name}: a text is needed")
    return value


def problem(error: Exception) -> JSONResponse:
    """The answer to a known error. An error never has a reward."""
    status, code = _status_of(error)
    body: Fields = {"error": str(error), "code": code}
    headers = {}
    if isinstance(error, UnknownEpisode):
        body["error"] = f"Episode not found: {error}"
    if isinstance(error, AtCapacity):
        body |= {"queue_position": error.position, "wait_s": error.wait_s}
        headers["Retry-After"] = str(math.ceil(error.retry_after_s or 1))
    return JSONResponse(body, status_code=status, headers=headers)


def _status_of(error: Exception) -> tuple[int, str]:
    if isinstance(error, AtCapacity):
        return 429, "full"
    if isinstance(error, UnknownEpisode):
        return 404, "unknown_episode"
    if isinstance(error, BadRequest):
        return 400, "bad_request"
    if isinstance(error, TaskError):
        name = type(error).__name__.removesuffix("Error").lower()
        return (500 if error.kind is TaskErrorKind.DESKTOP else 422), name
    if isinstance(error, EnvError) and error.kind is ErrorKind.TASK:
        return 422, "refused"
    return 500, "desktop"
