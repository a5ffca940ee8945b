"""Task sets and their tasks."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from deskhand_client.cli.output import Caller, calls


@click.group()
def task() -> None:
    """Tasks and where they come from."""


@task.command("sets")
@calls
def sets(caller: Caller) -> None:
    """Every task set."""
    caller.table(
        caller.client.list_task_sets(), ("name", "num_tasks", "num_heldout", "num_unsupported", "origin")
    )


@task.command("list")
@click.argument("task_set")
@click.option("--family", default="")
@click.option("--split", default="")
@click.option("--words", default="")
@calls
def list_(caller: Caller, task_set: str, **chosen: Any) -> None:
    """Tasks of a set."""
    rows = caller.client.every(caller.client.list_tasks, task_set, **chosen)
    caller.table(rows, ("id", "task_id", "family", "level", "split", "status", "instruction"))


@task.command("upload")
@click.argument("task_set")
@click.argument("file", type=click.File("rb"))
@click.option("--heldout", default=0.2, help="share of the tasks whose split the file does not name")
@click.option("--leave-out", is_flag=True, help="leave out what cannot be read, and leaks")
@calls
def upload(caller: Caller, task_set: str, file: BinaryIO, heldout: float, leave_out: bool) -> None:
    """Bring tasks in: a .json, .zip, .parquet or .jsonl, as a whole or not at all."""
    told = caller.client.upload_tasks(task_set, file=file, heldout=heldout, leave_out=leave_out)
    counts = (
        f"{told['num_added']} added, {told['num_changed']} changed, {len(told['unsupported'])} unsupported"
    )
    caller.show(told, f"{told['task_set']}, revision {told['revision']}: {counts}")


def add_to(main: click.Group) -> None:
    """These commands become part of `deskhand`."""
    main.add_command(task)
