"""The replay buffer: entries, labels, files in and out; exports of checkpoints."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from deskhand_client.cli.files import write_file
from deskhand_client.cli.output import OF_STATUS, Caller, Exit, calls, fail
from deskhand_client.client import POLL_S

SHOWN_LINES = 20
"""Of the bad ones; `--json` has all that the server lists."""
ENTRY = ("id", "trajectory_id", "family", "verdict", "tags", "labelled_by", "num_uses")


@click.command()
@click.option("--verdict", type=click.Choice(["inbox", "accepted", "rejected", "gold"]))
@click.option("--family", default="")
@click.option("--limit", default=50)
@calls
def entries(caller: Caller, **chosen: Any) -> None:
    """Entries of the replay buffer, newest first."""
    caller.table(caller.client.list_entries(**chosen)["items"], ENTRY)


@click.command()
@click.argument("pk", type=int)
@click.argument("verdict", required=False, type=click.Choice(["inbox", "accepted", "rejected", "gold"]))
@click.option("--tag", "tags", multiple=True, help="All its tags from now on.")
@click.option("--note")
@click.option("--expect", help="Refuse when another person has set another verdict than this.")
@calls
def label(
    caller: Caller, pk: int, verdict: str | None, tags: tuple[str, ...], note: str | None, expect: str | None
) -> None:
    """Change an entry's verdict, tags or note."""
    changed = caller.client.label_entry(
        pk, verdict=verdict, tags=list(tags) or None, note=note, expected_verdict=expect
    )
    caller.show(changed, lambda: caller.table([changed], ENTRY))


@click.command()
@click.argument("pk", type=int, required=False)
@calls
def unlabel(caller: Caller, pk: int | None) -> None:
    """Take back your own last label: of an entry, or without one the newest, a bulk change as a whole."""
    if pk is None:
        undone = caller.client.undo_latest_label()
        caller.show(undone, f"{undone['undone']} taken back.")
    else:
        caller.table([caller.client.undo_label(pk)], ENTRY)


@click.group()
def export() -> None:
    """Files out of Deskhand."""


@export.command("entries")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Without it to stdout.")
@click.option("--verdict", default="", help="Without it accepted and gold ones.")
@click.option("--family", default="")
@click.option("--tag", default="")
@click.option("--form", type=click.Choice(["jsonl", "parquet", "atif"]), default="jsonl")
@click.option("--images", type=click.Choice(["base64", "sha256"]), default="base64")
@click.option("--leave-out", is_flag=True, help="Leave out what the format has no form for.")
@calls
def export_entries(caller: Caller, output: Path | None, **chosen: Any) -> None:
    """Replay entries as JSON lines, a Parquet table, or a .zip of ATIF documents."""
    write_file(caller.client.export_entries(**chosen), output)
    if output:
        caller.show({"file": str(output), "bytes": output.stat().st_size}, f"Wrote {output}.")


@export.command("trajectories")
@click.argument("pk", type=int)
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), required=True, help="A folder."
)
@click.option("--purpose", default="", help="train, evaluation, ...; without it all.")
@click.option("--shards", default=1, help="Files to write.")
@calls
def export_trajectories(caller: Caller, pk: int, output: Path, purpose: Any, shards: int) -> None:
    """What an experiment recorded as Parquet, for datasets.load_dataset("parquet", data_dir=OUTPUT)."""
    output.mkdir(parents=True, exist_ok=True)
    files = []
    for shard in range(shards):
        files.append(output / f"{purpose or 'all'}-{shard:05d}-of-{shards:05d}.parquet")
        found = caller.client.export_trajectories(pk, purpose=purpose, shard=shard, num_shards=shards)
        write_file(found, files[-1])
    caller.show([str(file) for file in files], f"Wrote {len(files)} files to {output}.")


@export.command("checkpoint")
@click.argument("pk", type=int)
@click.argument("which", default="best")
@click.option("--dtype", type=click.Choice(["bfloat16", "float16", "float32"]), default="bfloat16")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Wait for it, fetch it as .tar."
)
@calls
def export_checkpoint(caller: Caller, pk: int, which: str, dtype: str, output: Path | None) -> None:
    """A checkpoint (best, latest, or its id) of an experiment as a plain transformers folder."""
    made = caller.client.export_checkpoint(pk, which, dtype=dtype)
    while output and made["status"] in ("queued", "running"):
        time.sleep(POLL_S)
        made = caller.client.show_export(pk, made["id"])
    if output and made["status"] != "finished":
        fail(f"Export {made['id']} is {made['status']}: {made['message']}", Exit.FAILED)
    if output:
        write_file(caller.client.download_export(pk, made["id"]), output)
    caller.show(made, f"Export {made['id']}: {made['status']} {output or made['path']}")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--task-set", required=True, help="Whose tasks the lines are of.")
@click.option("--keep-labels", is_flag=True, help="Take verdicts as they stand in the file.")
@click.option("--unknown", "takes_unknown", is_flag=True, help="Take other tasks as demonstrations only.")
@click.option("--check", "only_check", is_flag=True, help="Only say what it would store; 5 for bad lines.")
@calls
def import_(caller: Caller, file: Path, task_set: str, only_check: bool, **how: bool) -> None:
    """Read trajectories from a file into the replay buffer: checked first, then stored."""
    with file.open("rb") as stream:
        job = caller.client.check_import(file=stream, task_set=task_set, **how)
    if only_check:
        job = _only_checked(caller, job)
    else:
        job = _waited(caller, job, ("queued", "checking"))
        if job["status"] == "checked":
            job = _waited(caller, caller.client.start_import(job["id"]), ("approved", "storing"))
    caller.show(job, _in_words(job))
    code = OF_STATUS.get(job["status"], Exit.OK)
    raise SystemExit(int(Exit.FAILED if only_check and job["num_bad"] else code))


def _only_checked(caller: Caller, job: Any) -> Any:
    """What the check found; the import is cancelled then, also where the waiting is cut off."""
    try:
        job = _waited(caller, job, ("queued", "checking"))
    finally:
        if job["status"] in ("queued", "checking", "checked"):
            caller.client.cancel_import(job["id"])
    return job


def _in_words(job: Any) -> str:
    """Counts, and the bad lines by number."""
    stored = f", {job['num_stored']} stored" if job["num_stored"] else ""
    counts = f"{job['num_new']} new{stored}, {job['num_known']} here already, {job['num_bad']} bad"
    bad = [f"  line {found['line']}: {found['reason']}" for found in job["problems"][:SHOWN_LINES]]
    if job["num_bad"] > len(bad):
        bad.append(f"  and {job['num_bad'] - len(bad)} more")
    return "\n".join([f"Import {job['id']}: {job['status']}. {counts}. {job['message']}".rstrip(), *bad])


def _waited(caller: Caller, job: Any, while_: tuple[str, ...]) -> Any:
    while job["status"] in while_:
        time.sleep(POLL_S)
        job = caller.client.show_import(job["id"])
    return job


def add_to(main: click.Group) -> None:
    """These commands become part of `deskhand`."""
    for command in (entries, label, unlabel, export, import_):
        main.add_command(command)
