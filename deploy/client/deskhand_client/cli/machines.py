"""Hosts, workers and desktops."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Literal

import click

from deskhand_client.cli.output import Caller, Exit, calls, fail, table_of

HOST = (
    "id",
    "name",
    "status",
    "num_desktops",
    "num_leased",
    "running",
    "cpu_percent",
    "disk_free_mb",
    "problem",
)
WORKER = ("id", "name", "queue", "status", "slots", "running")
DESKTOP = ("name", "host", "provider", "state", "trajectory_id", "num_resets", "num_failures", "reason")


@click.command()
@calls
def fleet(caller: Caller) -> None:
    """Hosts and workers, and how many desktops there are."""
    found = caller.client.show_fleet()

    def text() -> None:
        click.echo(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["totals"].items()))
        for rows, columns in ((found["hosts"], HOST), (found["workers"], WORKER)):
            caller.console.print(table_of(rows, columns))

    caller.show(found, text)


@click.command()
@click.option("--host", default="")
@click.option("--phase", default="", help="starting, ready, leased, resetting, dead, quarantined, failed")
@calls
def desktops(caller: Caller, **chosen: Any) -> None:
    """Living desktops."""
    caller.table(caller.client.every(caller.client.list_desktops, **chosen), DESKTOP)


@click.command()
@click.argument("name")
@click.argument("verb", type=click.Choice(["restart", "quarantine", "release", "kill"]))
@click.option("--reason", default="", help="Needed to quarantine.")
@calls
def desktop(caller: Caller, name: str, verb: Any, reason: str) -> None:
    """Ask a desktop's host to restart, quarantine, release or kill it."""
    asked = caller.client.operate_desktop(name, verb, reason=reason)
    caller.show(asked, f"Asked {asked['host']} to {verb} {name} (operation {asked['id']}).")


@click.group()
def host() -> None:
    """Machines with desktops or GPUs."""


@host.command("join")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["env", "gpu"]),
    default=["env"],
    help="What it gives: desktops (env), GPUs (gpu), or both.",
)
@click.option(
    "--run",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run it now, in this checkout of Deskhand.",
)
@calls
def host_join(caller: Caller, roles: tuple[Literal["env", "gpu"], ...], folder: Path | None) -> None:
    """A command that makes another machine a host, and its token, good once within the hour."""
    made = caller.client.invite_host(roles=list(roles))
    if folder is None:
        caller.show(made, f"{made['command']}\nToken: {made['token']}")
        return
    arguments = [f"SERVER={made['server']}", f"ROLES={','.join(roles)}"]
    token = f"{made['token']}\n".encode()
    if code := subprocess.run(["make", "join", *arguments], cwd=folder, input=token, check=False).returncode:
        fail(f"make join ended with {code}.", Exit.FAILED)


@host.command("drain")
@click.argument("pk", type=int)
@click.option("--undo", is_flag=True, help="Take work again.")
@calls
def host_drain(caller: Caller, pk: int, undo: bool) -> None:
    """Give a host no new work; what it runs goes on."""
    done = caller.client.drain_host(pk, on=not undo)
    caller.show(done, f"{done['target']}: {done['outcome']}.")


@host.command("revoke")
@click.argument("pk", type=int)
@calls
def host_revoke(caller: Caller, pk: int) -> None:
    """End the identity of a joined host (its joined_id in `fleet --json`)."""
    caller.client.revoke_host(pk)
    caller.show(None, "Revoked; what it ran is run again elsewhere.")


def add_to(main: click.Group) -> None:
    """These commands become part of `deskhand`."""
    for command in (fleet, desktops, desktop, host):
        main.add_command(command)
