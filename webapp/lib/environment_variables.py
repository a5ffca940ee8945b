"""Readers of environment variables that fail loudly, and the secrets kept in the data folder."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

T = TypeVar("T")
TRUE_WORDS = {"1", "true", "yes", "on"}
FALSE_WORDS = {"0", "false", "no", "off"}


def env_str(name: str, default: str = "") -> str:
    """The variable's text; an empty variable counts as not set."""
    return os.environ.get(name) or default


def env_bool(name: str, default: bool, source: Mapping[str, str] = os.environ) -> bool:
    """Read a switch. Raises ValueError when the text is neither a yes nor a no."""
    text = source.get(name, "").strip().lower()
    if not text:
        return default
    if text in TRUE_WORDS:
        return True
    if text in FALSE_WORDS:
        return False
    raise ValueError(f"{name}={text}: use 1 or 0")


def env_int(name: str, default: int) -> int:
    """Read a whole number. Raises ValueError naming the variable when it is not one."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        return int(text)
    except ValueError as exc:
        raise ValueError(f"{name}={text}: use a whole number") from exc


def env_positive(name: str, default: int) -> int:
    """Read a number of things. Raises ValueError naming the variable below 1."""
    number = env_int(name, default)
    if number < 1:
        raise ValueError(f"{name}={number}: use 1 or more")
    return number


def env_choice(name: str, choices: Sequence[str]) -> str:
    """Read one of some words, by default the first. Raises ValueError naming the variable for others."""
    text = env_str(name, choices[0])
    if text not in choices:
        raise ValueError(f"{name}={text}: use {' or '.join(choices)}")
    return text


def env_parsed(name: str, default: str, parse: Callable[[str], T]) -> T:
    """Read a value by its own reader. Raises ValueError naming the variable."""
    try:
        return parse(env_str(name, default))
    except ValueError as exc:
        raise ValueError(f"{name}: {exc}") from exc


def env_list(name: str, default: list[str], source: Mapping[str, str] = os.environ) -> list[str]:
    """Read a comma-separated list; blanks are dropped."""
    text = source.get(name, "")
    return [part.strip() for part in text.split(",") if part.strip()] or default


def make_private(folder: Path) -> None:
    """Make a folder that only its owner may enter; one of another owner stays as it is."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    state = folder.stat()
    if state.st_mode & 0o077 and state.st_uid == os.geteuid():
        folder.chmod(0o700)


def env_paths(name: str, default: list[Path], source: Mapping[str, str] = os.environ) -> list[Path]:
    """Read a comma-separated list of folders."""
    found = [Path(text).expanduser() for text in env_list(name, [], source)]
    return [path.resolve() for path in found or default]


def sqlite_database(path: Path, *, keeps: bool = False) -> dict[str, object]:
    """Django's settings for the embedded database.

    WAL lets readers go on while one writes; IMMEDIATE takes the write lock when a transaction
    begins, so that two writers queue for it instead of failing half-way. `keeps`: threads that stay keep
    their connections, with less memory each; making one takes as long as some queries.
    """
    cache_kib = 4_000 if keeps else 32_000
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "CONN_MAX_AGE": None if keeps else 0,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,  # seconds: SQLite's busy_timeout
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
                f"PRAGMA cache_size=-{cache_kib}; PRAGMA mmap_size=268435456; PRAGMA temp_store=MEMORY;"
            ),
        },
    }


def database_from_url(url: str, *, pooled: bool, most: int = 16, keeps: bool = False) -> dict[str, object]:
    """Django's settings for `postgresql://user:password@host:port/name` or `sqlite:///path`.

    A host given as `?host=/run/postgresql` is a unix socket folder. `pooled` keeps PostgreSQL's connections
    open between requests, which an ASGI server otherwise opens anew for each, and at most `most` of them; a
    thread waits for one. `keeps`: see `sqlite_database`. Raises ValueError for other schemes.
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return sqlite_database(Path(unquote(parts.path)), keeps=keeps)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ValueError(f"DATABASE_URL: unknown scheme {parts.scheme!r}; use postgresql:// or sqlite:///")
    query = dict(parse_qsl(parts.query))
    pool = {"pool": {"min_size": 1, "max_size": most, "timeout": 10}} if pooled else {}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or query.pop("port", "")),
        "OPTIONS": {**query, **pool},
    }
