"""What a line of a service's log looks like: text for people, or JSON with the ids of what it is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum


class LogFormat(StrEnum):
    """Of DESKHAND_LOG_FORMAT."""

    TEXT = "text"
    JSON = "json"

    @classmethod
    def read(cls, text: str | None) -> LogFormat:
        """Text without any. Raises ValueError that names what is allowed."""
        if not text:
            return cls.TEXT
        if text not in tuple(cls):
            raise ValueError(f"{text!r} is no format of logs: use {' or '.join(cls)}")
        return cls(text)


VARIABLE = "DESKHAND_LOG_FORMAT"
JSON_START = '{"time": '
"""How every JSON line begins; it has its own time."""
_about: ContextVar[dict[str, int]] = ContextVar("about", default={})  # noqa: B039  never changed in place


@contextmanager
def log_about(**ids: int) -> Iterator[None]:
    """Lines of this thread or coroutine carry these ids meanwhile: `trajectory_id`, `experiment_id`."""
    token = _about.set({**_about.get(), **ids})
    try:
        yield
    finally:
        _about.reset(token)


def ids_now() -> dict[str, int]:
    """What the present work is about."""
    return _about.get()


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the ids, and the error with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            "thread": record.threadName,
            **ids_now(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up_logging(text_format: str, log_format: LogFormat) -> None:
    """Of a process without Django; `text_format` is logging's own."""
    handler = logging.StreamHandler()
    is_json = log_format is LogFormat.JSON
    handler.setFormatter(JsonLines() if is_json else logging.Formatter(text_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
