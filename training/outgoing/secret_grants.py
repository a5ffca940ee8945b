"""Which team may send which secret where.

A file beside the secrets, `team_grants.json`, names the teams of each secret and the beginnings of the URLs
that it may be sent to: {"vendor-token": {"teams": ["home"], "urls": ["https://cluster.example/"]}}. A secret
that is not sent to a URL (a password typed into desktops) needs no "urls". What is not granted is refused.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

FILE = "team_grants.json"
"""With an underscore: no secret can have this name."""


class GrantError(ValueError):
    """Raised when a secret is not granted, or the file cannot be read; the message says what to do."""


class Grant(BaseModel):
    """Who may use a secret, and where it may go."""

    model_config = ConfigDict(extra="forbid")

    teams: list[str] = []
    urls: list[str] = []


GRANTS = TypeAdapter(dict[str, Grant])


def read_grants(folder: Path) -> dict[str, Grant]:
    """Secret -> its grant; empty without a file. Raises GrantError."""
    path = folder / FILE
    try:
        return GRANTS.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise GrantError(f"{path} cannot be read as grants of secrets: {str(error)[:300]}") from error


def add_grant(folder: Path, *, secret: str, team: str, urls: Iterable[str]) -> Grant:
    """Let a team use a secret, also for these URLs."""
    grants = read_grants(folder)
    grant = grants.setdefault(secret, Grant())
    grant.teams = list(dict.fromkeys([*grant.teams, team]))
    grant.urls = list(dict.fromkeys([*grant.urls, *urls]))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = folder / f".{FILE}.{os.getpid()}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        json.dump({name: one.model_dump() for name, one in grants.items()}, stream, indent=2)
    draft.replace(folder / FILE)
    return grant


def check_grant(folder: Path, *, secret: str, team: str, urls: Iterable[str]) -> None:
    """Raise GrantError unless `team` may send `secret` to all of `urls`."""
    wanted = list(urls)
    grant = read_grants(folder).get(secret, Grant())
    how = f"an administrator runs: manage.py grant_secret {secret} {team!r} {' '.join(wanted)}".rstrip()
    if team not in grant.teams:
        raise GrantError(f"the secret {secret!r} is not granted to the team {team}; {how}")
    for url in wanted:
        if not any(is_below(url, start) for start in grant.urls):
            raise GrantError(f"the secret {secret!r} may not be sent to {url}; {how}")


def is_below(url: str, start: str) -> bool:
    """True when `url` has the scheme, host and port of `start`, and a path below its path."""
    one, other = urlsplit(url), urlsplit(start)
    same = (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)
    folder = other.path.rstrip("/")
    return same and not _leads_up(one.path) and (one.path.rstrip("/") + "/").startswith(folder + "/")


def _leads_up(path: str) -> bool:
    """Whether a server that decodes `path`, perhaps more than once, finds `..` in it."""
    while (decoded := unquote(path)) != path:
        path = decoded
    return ".." in path
