"""`deskhand`: the groups of commands, signing in, and any operation of the API by its name."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from deskhand_client.cli import curate, experiments, machines, session, tasks
from deskhand_client.cli.files import write_file
from deskhand_client.cli.output import Caller, Exit, calls, fail, signed_in, told
from deskhand_client.operations import Operations


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Deskhand from the command line.

    Every command takes --json. Exit codes: 0 done, 1 refused by the server, 2 not understood, 3 not signed
    in, 4 no answer, 5 the thing failed, 6 it was cancelled or is paused.
    """


@main.command()
@click.argument("url")
@click.option("--token", help="From your profile page; asked for without it, read from stdin for -.")
@click.option("--team", default="", help="Of your teams; without it the first one.")
@click.option("--json", "as_json", is_flag=True, help="Print what the server answers.")
def login(url: str, token: str | None, team: str, as_json: bool) -> None:
    """Keep a server's address and a token for the commands to come."""
    if token == "-":
        token = sys.stdin.readline().strip()
    token = token or click.prompt("Token", hide_input=True)
    made = session.Login(url if "://" in url else f"https://{url}", token, team)
    with made.client() as client, told(as_json):
        me = client.show_me()
        session.store(made)
        teams = ", ".join(f"{name} ({role})" for name, role in me["teams"].items())
        Caller(client, as_json).show(me, f"Signed in as {me['username']}; teams: {teams or 'none'}.")


@main.command()
def logout() -> None:
    """Forget the token here; on the profile page it is revoked."""
    click.echo("Forgotten." if session.forget() else "There was nothing to forget.")


@main.command()
@calls
def whoami(caller: Caller) -> None:
    """Who the token belongs to."""
    me = caller.client.show_me()
    caller.show(
        me, f"{me['username']}: {', '.join(f'{team} ({role})' for team, role in me['teams'].items())}"
    )


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands: eval "$(deskhand completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "deskhand", "_DESKHAND_COMPLETE").source())


def _operations() -> list[str]:
    return [name for name in vars(Operations) if not name.startswith("_")]


@main.command("call")
@click.argument("operation", type=click.Choice(_operations()), metavar="OPERATION")
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="For an answer that is a file."
)
@calls
def call_operation(caller: Caller, operation: str, values: tuple[str, ...], output: Path | None) -> None:
    """Call any operation of the API by its name, e.g. call show_tree pk=12.

    Values are JSON where they can be, else text; @FILE sends a file.
    """
    method = getattr(caller.client, operation)
    known = inspect.signature(method).parameters
    given: dict[str, Any] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or name not in known:
            raise click.UsageError(
                f"{text}: {operation} takes {', '.join(known) or 'nothing'}, as NAME=VALUE."
            )
        given[name] = _value(value, str(known[name].annotation))
    if missing := [name for name, p in known.items() if p.default is p.empty and name not in given]:
        raise click.UsageError(f"{operation} needs {', '.join(missing)}.")
    answer: Any = method(**given)
    if isinstance(answer, Generator):
        write_file(answer, output)
    else:
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))


def _value(text: str, kind: str) -> Any:
    if "BinaryIO" in kind:
        return Path(text.removeprefix("@")).open("rb")
    if kind == "str" or kind.startswith(("str |", "Literal['")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@main.command("mcp")
@click.option("--write", is_flag=True, help="Also tools that change something, within the token's scope.")
def serve_mcp(write: bool) -> None:
    """Serve the API's operations as tools to an agent (MCP over stdin and stdout)."""
    try:
        from deskhand_client.mcp_server import make_server
    except ImportError as error:
        fail(f"{error}; install it with: pip install 'deskhand-client[mcp]'", Exit.REFUSED)
    with signed_in().client() as client:
        make_server(client, with_writes=write).run()


experiments.add_to(main)
curate.add_to(main)
machines.add_to(main)
tasks.add_to(main)
