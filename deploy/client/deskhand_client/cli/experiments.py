"""Launching, watching and steering experiments and sweeps."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import yaml
from rich.live import Live
from rich.table import Table

from deskhand_client.cli.output import OF_STATUS, Caller, Exit, calls, fail, table_of
from deskhand_client.client import FINAL, POLL_S

COLUMNS = ("id", "name", "status", "stage", "step", "priority", "created_at")
WATCHED = ("train/success", "train/reward", "eval/success")


@click.command()
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--preset", default="", help="Start from this one instead of a file.")
@click.option(
    "--set", "changes", multiple=True, metavar="PATH=VALUE", help="Of a preset, e.g. algorithm.num_steps=3."
)
@click.option("--name", help="Default: the file's or preset's name.")
@click.option("--priority", default=0, help="A higher one runs first.")
@click.option("--note", default="")
@click.option("--check", is_flag=True, help="Only say what the pre-flight finds.")
@click.option("--watch", "and_watch", is_flag=True, help="Wait for its end, like `watch`.")
@calls
def launch(
    caller: Caller,
    config: Path | None,
    preset: str,
    changes: tuple[str, ...],
    name: str | None,
    **options: Any,
) -> None:
    """Queue an experiment from a YAML file or a preset."""
    body = what_to_launch(config, preset, changes)
    body |= {
        "name": name or (config.stem if config else preset),
        "priority": options["priority"],
        "note": options["note"],
    }
    if options["check"]:
        found = caller.client.check_experiment(**body)
        caller.show(found, lambda: caller.table(found["checks"], ("level", "title", "detail")))
        raise SystemExit(int(Exit.OK if found["may_launch"] else Exit.REFUSED))
    made = caller.client.launch_experiment(**body)
    caller.show(made, f"Queued as {made['id']}: {made['name']}. {made['waiting_because']}")
    if options["and_watch"]:
        follow(caller, made["id"])


def what_to_launch(config: Path | None, preset: str, changes: tuple[str, ...]) -> dict[str, Any]:
    """The body's part that says what to run."""
    if bool(config) == bool(preset):
        raise click.UsageError("Give a YAML file or --preset, and not both.")
    if config:
        if changes:
            raise click.UsageError("--set changes a preset; edit the file instead.")
        return {"yaml": config.read_text()}
    nested: dict[str, Any] = {}
    for text in changes:
        path, sign, value = text.partition("=")
        if not sign:
            raise click.UsageError(f"--set {text}: write PATH=VALUE.")
        *sections, knob = path.strip().split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[knob] = yaml.safe_load(value)
    return {"preset": preset, "config": nested}


@click.command("list")
@click.option("--status", help="queued, starting, running, paused, finished, failed, cancelled ...")
@click.option("--tag", default="")
@click.option("--archived/--not-archived", default=None, help="Only those, or only the others.")
@click.option("--limit", default=50, help="How many; 0 = all.")
@calls
def list_(caller: Caller, limit: int, **chosen: Any) -> None:
    """Experiments, newest first."""
    found = []
    for row in caller.client.every(caller.client.list_experiments, **chosen):
        found.append(row)
        if len(found) == limit:
            break
    caller.table(found, COLUMNS)


@click.command()
@calls
def queue(caller: Caller) -> None:
    """Waiting experiments in the order in which they run."""
    caller.table(caller.client.list_queue(), ("id", "name", "priority", "message"))


@click.command()
@click.argument("pk", type=int)
@calls
def show(caller: Caller, pk: int) -> None:
    """One experiment."""
    seen = caller.client.show_experiment(pk)
    caller.show(seen, lambda: caller.console.print(picture_of(seen, {})))


def picture_of(seen: Any, metrics: dict[str, Any]) -> Table:
    """Stages, evaluations and newest metrics, for people."""
    table = Table.grid(padding=(0, 2))
    table.add_row(
        f"[bold]#{seen['id']}[/bold]", f"{seen['name']}: [bold]{seen['status']}[/bold]", seen["message"]
    )
    for stage in seen["stages"]:
        share = f"{stage['done']} of {stage['total']} {stage['unit']}" if stage["total"] else ""
        table.add_row("", f"{stage['name']}: {stage['status']}", share)
    for one in seen["evaluations"]:
        kind = "greedy" if one.get("temperature") == 0 else "sampled"
        text = f"{one['success']:.0%} ({one['low']:.0%} to {one['high']:.0%}, n = {one['num_samples']})"
        if (solved := one.get("solved")) is not None and one.get("num_solved_at_limit"):
            text = f"{solved:.0%} solved and ended by the agent; with those at a limit {text}"
        table.add_row("", f"{one['name']}, {kind}", text)
    for name, series in metrics.items():
        if series["values"]:
            table.add_row("", name, f"{series['values'][-1]:.4g} at step {series['steps'][-1]}")
    return table


@click.command()
@click.argument("pk", type=int)
@calls
def watch(caller: Caller, pk: int) -> None:
    """Look on until it has ended. Exit code 5 when it failed, 6 when it was cancelled or is paused."""
    follow(caller, pk)


def follow(caller: Caller, pk: int) -> None:
    """A live table; with --json one line per change of status or step."""
    if caller.as_json:
        last: list[Any] = []

        def tell(seen: Any) -> None:
            now = [seen["status"], seen["stage"], seen["step"]]
            if now != last:
                last[:] = now
                keys = ("id", "status", "stage", "step", "message")
                click.echo(json.dumps({key: seen[key] for key in keys}, ensure_ascii=False))

        ended = caller.client.wait_for_experiment(pk, tell=tell)
    else:
        with Live(console=caller.console, refresh_per_second=2) as live:
            while True:
                ended = caller.client.show_experiment(pk)
                live.update(picture_of(ended, {}))
                if ended["status"] in (*FINAL, "paused"):
                    break
                time.sleep(POLL_S)
    raise SystemExit(int(OF_STATUS.get(ended["status"], Exit.OK)))


def _steering(name: str, operation: str, doc: str) -> click.Command:
    @click.command(name, help=doc)
    @click.argument("pks", type=int, nargs=-1, required=True, metavar="ID...")
    @calls
    def steer(caller: Caller, pks: tuple[int, ...]) -> None:
        rows = [getattr(caller.client, operation)(pk) for pk in pks]
        caller.table(rows, ("id", "name", "status", "message"))

    return steer


@click.command()
@click.argument("pk", type=int)
@click.argument("value", type=int)
@calls
def priority(caller: Caller, pk: int, value: int) -> None:
    """Change its priority."""
    caller.table([caller.client.set_priority(pk, priority=value)], ("id", "name", "priority"))


@click.command()
@click.argument("pk", type=int)
@click.option("--before", type=int, help="Another queued one; without it, to the end.")
@calls
def move(caller: Caller, pk: int, before: int | None) -> None:
    """Put it to another place in the queue."""
    caller.client.move_experiment(pk, before=before)
    caller.table(caller.client.list_queue(), ("id", "name", "priority", "message"))


@click.command()
@click.argument("pk", type=int)
@click.option("--file", "name", help="Without it the newest attempt's trainer log.")
@click.option("-f", "--follow", "keep_on", is_flag=True, help="Print what is written from now on, too.")
@click.option("--first-error", is_flag=True, help="Begin where the first error is.")
@click.option("--files", is_flag=True, help="Only name the files.")
@calls
def logs(caller: Caller, pk: int, name: str | None, keep_on: bool, first_error: bool, files: bool) -> None:
    """The end of a log file, or all that comes."""
    found = caller.client.list_logs(pk)
    if files:
        caller.table(found, ("name", "num_bytes", "modified_at"))
        return
    if not found:
        fail(f"Experiment {pk} has no log yet.", Exit.REFUSED)
    name = name or found[0]["name"]
    if first_error:
        chunk = _at_error(caller, pk, name)
    elif keep_on:
        for line in caller.client.follow_log(pk, name):
            caller.show(line, line["text"])
        return
    else:
        chunk = caller.client.read_log(pk, name)
    caller.show(chunk, "\n".join(line["text"] for line in chunk["lines"]))


def _at_error(caller: Caller, pk: int, name: str) -> Any:
    after = 0
    while True:
        chunk = caller.client.read_log(pk, name, after=after, at="first-error")
        if chunk.get("found", True):
            return chunk
        if chunk.get("is_searched", True):
            fail(f"{name} holds no error.", Exit.REFUSED)
        after = chunk["end"]


@click.command()
@click.argument("pk", type=int)
@click.option("--limit", default=20)
@calls
def groups(caller: Caller, pk: int, limit: int) -> None:
    """Groups of an experiment, newest first."""
    page = caller.client.list_groups(pk, limit=limit)
    columns = ("id", "task_id", "purpose", "step", "num_final", "size", "reward_mean", "reward_std")
    caller.table(page["items"], columns)


@click.command()
@click.argument("pk", type=int)
@calls
def group(caller: Caller, pk: int) -> None:
    """The members of one group."""
    found = caller.client.show_group(pk)
    columns = ("id", "status", "source", "num_turns", "score", "reward", "advantage", "error")
    caller.show(found, lambda: caller.table(found["members"], columns))


@click.command()
@click.argument("pks", type=int, nargs=-1, required=True, metavar="ID ID...")
@calls
def compare(caller: Caller, pks: tuple[int, ...]) -> None:
    """Two to six experiments side by side: success, what differs."""
    found = caller.client.compare_experiments(id=list(pks))

    def text() -> None:
        rows = [_compared(run) for run in found["runs"]]
        caller.console.print(table_of(rows, ("id", "name", "status", "sampled", "greedy", "greedy_p")))
        rows = [
            {"knob": one["path"], **{f"#{pk}": value for pk, value in zip(pks, one["values"], strict=False)}}
            for one in found["differences"]
        ]
        if rows:
            caller.console.print(table_of(rows, ("knob", *(f"#{pk}" for pk in dict.fromkeys(pks)))))
        for warning in found["warnings"]:
            click.echo(warning)

    caller.show(found, text)


def _compared(run: Any) -> dict[str, Any]:
    shares = {kind: f"{run[kind]['success']:.0%}" if run[kind] else None for kind in ("sampled", "greedy")}
    change = run["greedy_against_first"]
    return {
        **{key: run[key] for key in ("id", "name", "status")},
        **shares,
        "greedy_p": change["p"] if change else None,
    }


@click.group()
def sweep() -> None:
    """Searches over knobs."""


@sweep.command("launch")
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--preset", default="")
@click.option("--set", "changes", multiple=True, metavar="PATH=VALUE")
@click.option("--axis", "axes", multiple=True, help='e.g. "optimiser.learning_rate = 1e-6, 3e-6"')
@click.option("--seeds", type=int, help="Experiments of every combination.")
@click.option("--plan", default="{}", help="More of the plan, as YAML, e.g. '{search: tpe, num_arms: 8}'.")
@click.option("--name", required=True)
@calls
def sweep_launch(
    caller: Caller,
    config: Path | None,
    preset: str,
    changes: tuple[str, ...],
    axes: tuple[str, ...],
    **options: Any,
) -> None:
    """Begin one."""
    plan: Any = yaml.safe_load(options["plan"]) or {}
    if options["seeds"] is not None:
        plan["num_seeds"] = options["seeds"]
    body = what_to_launch(config, preset, changes)
    made = caller.client.launch_sweep(name=options["name"], axes=list(axes), plan=plan, **body)
    _show_sweep(caller, made)


@sweep.command("show")
@click.argument("pk", type=int)
@calls
def sweep_show(caller: Caller, pk: int) -> None:
    """Its arms and how they do."""
    _show_sweep(caller, caller.client.show_sweep(pk))


def _sweep_steering(name: str) -> click.Command:
    @click.command(name, help=f"{name.capitalize()} the whole.")
    @click.argument("pk", type=int)
    @calls
    def steer(caller: Caller, pk: int) -> None:
        _show_sweep(caller, getattr(caller.client, f"{name}_sweep")(pk))

    return steer


def _show_sweep(caller: Caller, found: Any) -> None:
    def text() -> None:
        click.echo(f"Sweep {found['id']} {found['name']}: {found['status']}. {found['message']}")
        rows = [{**arm, "values": json.dumps(arm["values"])} for arm in found["arms"]]
        caller.console.print(
            table_of(rows, ("number", "status", "values", "mean", "num_finished", "experiments"))
        )

    caller.show(found, text)


def add_to(main: click.Group) -> None:
    """These commands become part of `deskhand`."""
    for command in (launch, list_, queue, show, watch, priority, move, logs, groups, group, compare, sweep):
        main.add_command(command)
    for name in ("cancel", "pause", "resume"):
        sweep.add_command(_sweep_steering(name))
    main.add_command(_steering("cancel", "cancel_experiment", "Stop experiments."))
    main.add_command(
        _steering("pause", "pause_experiment", "Finish the step, save a checkpoint, give the GPU back.")
    )
    main.add_command(_steering("resume", "resume_experiment", "Queue paused or failed ones again."))
