"""Task sets and their tasks."""

from __future__ import annotations

from typing import Any

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


def add_to(main: click.Group) -> None:
    """These commands become part of `deskhand`."""
    main.add_command(task)
