"""Which server and token a call uses: variables, else what `deskhand login` stored."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from deskhand_client.client import Client

VARIABLES = {"url": "DESKHAND_URL", "token": "DESKHAND_TOKEN", "team": "DESKHAND_TEAM"}


@dataclass(frozen=True, slots=True)
class Login:
    """A server, and who calls it."""

    url: str
    token: str
    team: str = ""
    """"" = the first one of the token's owner."""

    def client(self) -> Client:
        return Client(self.url, self.token, team=self.team)


def stored_file() -> Path:
    """Where `login` keeps it; DESKHAND_CLIENT_FILE names another place."""
    named = os.environ.get("DESKHAND_CLIENT_FILE")
    return Path(named) if named else Path(click.get_app_dir("deskhand")) / "login.json"


def store(login: Login) -> None:
    """Keep it, readable by this person alone."""
    file = stored_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        json.dump(asdict(login), stream)
    new.replace(file)


def forget() -> bool:
    """Delete what is kept; False when there was nothing."""
    file = stored_file()
    if not file.exists():
        return False
    file.unlink()
    return True


def current() -> Login | None:
    """Variables win, one by one; None without an address or token."""
    values = {"url": "", "token": "", "team": ""}
    file = stored_file()
    if file.exists():
        try:
            values |= json.loads(file.read_text())
        except ValueError as error:
            raise click.ClickException(f"{file} is no JSON: run `deskhand login` again.") from error
    values |= {name: os.environ[variable] for name, variable in VARIABLES.items() if os.environ.get(variable)}
    return Login(**values) if values["url"] and values["token"] else None
