"""What commands print: a table for people, or with `--json` what the server answered; and exit codes."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

import click
from rich.console import Console
from rich.table import Table

from deskhand_client.cli import session
from deskhand_client.client import Client
from deskhand_client.transport import ApiError, Unreachable


class Exit(IntEnum):
    """What a script can tell apart."""

    OK = 0
    REFUSED = 1
    """The server refused it, or the thing is not in a state that allows it."""
    USAGE = 2
    """The command was not understood; click's own."""
    NOT_SIGNED_IN = 3
    UNREACHABLE = 4
    FAILED = 5
    """An experiment, import or export ended as failed."""
    CANCELLED = 6
    """It was cancelled, or waits as paused."""


OF_STATUS = {"failed": Exit.FAILED, "cancelled": Exit.CANCELLED, "paused": Exit.CANCELLED}
"""Status that a watched thing ended with -> exit code; others are OK."""
T = TypeVar("T", bound=Callable[..., Any])


class Caller:
    """What every command gets: the client, and how to print."""

    def __init__(self, client: Client, as_json: bool) -> None:
        self.client = client
        self.as_json = as_json
        self.console = Console(highlight=False)

    def show(self, answer: Any, text: Callable[[], None] | str) -> None:
        """The answer as JSON, or what people read."""
        if self.as_json:
            click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        elif isinstance(text, str):
            click.echo(text)
        else:
            text()

    def table(self, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
        """Rows under `columns`, which are names of fields; JSON is the list of rows."""
        found = list(rows)
        if self.as_json:
            click.echo(json.dumps(found, ensure_ascii=False, indent=2))
        elif not found:
            click.echo("Nothing.")
        else:
            self.console.print(table_of(found, columns))


def table_of(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> Table:
    """A table of these fields."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell(row.get(name)) for name in columns))
    return table


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value).replace("[", "\\[")  # rich reads [this] as a style


def calls(command: T) -> T:
    """A command that calls the server: adds `--json`, passes a `Caller`, and says refusals in one line."""

    @click.option("--json", "as_json", is_flag=True, help="Print what the server answers.")
    @functools.wraps(command)
    def run(*args: Any, as_json: bool, **options: Any) -> Any:
        with signed_in().client() as client, told(as_json):
            return command(Caller(client, as_json), *args, **options)

    return run  # type: ignore[return-value]


def signed_in() -> session.Login:
    """Whom commands call as; without one the command ends."""
    login = session.current()
    if login is None:
        fail(
            "Not signed in: run `deskhand login URL`, or set DESKHAND_URL and DESKHAND_TOKEN.",
            Exit.NOT_SIGNED_IN,
        )
    return login


class told:
    """A context in which refusals end the command with one line and a code."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ApiError):
            code = Exit.NOT_SIGNED_IN if error.status == 401 else Exit.REFUSED
            if self.as_json:
                body = {"code": error.code, "message": error.message, "fields": error.fields}
                click.echo(json.dumps({"error": body}, ensure_ascii=False, indent=2))
            fail(error.message, code)
        if isinstance(error, Unreachable):
            fail(str(error), Exit.UNREACHABLE)


def fail(message: str, code: Exit) -> NoReturn:
    """End the command."""
    click.echo(f"deskhand: {message}", err=True)
    raise SystemExit(int(code))
