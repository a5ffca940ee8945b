"""Import a task set: a generated one, a folder of task JSON, an OSWorld checkout, or a parquet."""

import re
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.content.task_sets.registry import GENERATORS
from training.tasks.importers import LoadedTasks, load_tasks
from training.tasks.supported_by.runtimes import WHERE, TaskRuntime, grouped_reasons
from training.tasks.task_json import LoadError
from webapp.experiments.models import TaskSet
from webapp.experiments.services.task_sets import Import, import_task_set
from webapp.lib.request_values import BadValue

CONDITIONS = {
    "proxy": "ask for a proxy: desktops.osworld.enable_proxy on OSWorld's own machines",
    "fixed_ip": "ask for a fixed IP address, which DesktopEnv leaves to its machines' network",
    "possibility_of_env_change": "use sites that may have changed since they were written",
}
"""What a source says of a task, kept in `published`: scores on live sites are not the published ones."""
CALM = (None, False, "", "low", "none")
MAX_GROUPS = 12
MAX_NAMED = 3


class Command(BaseCommand):
    help = (
        f"Import tasks from SOURCE: {', '.join(GENERATORS)} (generated), a folder of OSWorld task JSON, an "
        "OSWorld checkout or one of its indexes, or Slime-OSWorld's tasks as parquet or JSONL."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("source", help=f"{', '.join(GENERATORS)}, or a path")
        parser.add_argument("--name", help="name of the task set; default: the source's name")
        parser.add_argument("--seed", type=int, default=0, help="seed of a generated set")
        parser.add_argument(
            "--heldout", type=float, default=0.2, help="held-out share where the source names no split"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        source = options["source"]
        path = Path(source).expanduser()
        name = options["name"] or re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:60]
        if source in GENERATORS:
            loaded = LoadedTasks(GENERATORS[source](options["seed"]), [])
            origin = f"generated, seed {options['seed']}"
        else:
            if not path.exists():
                raise CommandError(f"{source}: neither a generated set ({', '.join(GENERATORS)}) nor a path")
            try:
                loaded = load_tasks(path, heldout_fraction=options["heldout"])
            except LoadError as error:
                raise CommandError(str(error)) from error
            origin = str(path.resolve())
        owned = TaskSet.objects.filter(name=name).exclude(team=None).select_related("team").first()
        if owned is not None:
            raise CommandError(f"the task set {name} belongs to the team {owned.team}; give another --name")
        try:
            result = import_task_set(name=name, origin=origin, tasks=loaded.tasks)
        except BadValue as error:
            raise CommandError(f"--{error}") from error
        if options["verbosity"]:
            self._report(result, loaded.refused)

    def _report(self, result: Import, refused: list[str]) -> None:
        self.stdout.write(
            f"{result.task_set.name}: {result.added} added, {result.changed} changed, "
            f"{result.unchanged} unchanged, {result.gone} gone, {result.unsupported} unsupported, "
            f"{len(refused)} refused"
        )
        for reason in refused:
            self.stdout.write(f"  refused {reason}")
        rows = result.task_set.tasks.current().order_by("task_id")
        columns = list(rows.values_list("task_id", "reasons", "spec__published"))
        published = [found or {} for *_, found in columns]
        for key, what in CONDITIONS.items():
            if num := sum(found.get(key) not in CALM for found in published):
                self.stdout.write(f"  {num} {what} ({key})")
        num_lacking = {
            runtime: sum(found.get(runtime, "").count("; ") for _, found, _ in columns) for runtime in WHERE
        }
        best_first = sorted(WHERE, key=lambda runtime: (-result.runnable[runtime], num_lacking[runtime]))
        for runtime in best_first:
            if runtime.system in ("linux", "windows") or result.runnable[runtime]:
                self.stdout.write(f"  {result.runnable[runtime]} can run {WHERE[runtime][0]}")
        for runtime in best_first:
            reasons = [(name, found.get(runtime, "")) for name, found, _ in columns]
            if any(reason for _, reason in reasons):
                self._report_reasons(runtime, reasons)
                break

    def _report_reasons(self, runtime: TaskRuntime, reasons: list[tuple[str, str]]) -> None:
        """What keeps the others from the runtime that fits best, of those that cannot run all."""
        num = sum(bool(reason) for _, reason in reasons)
        self.stdout.write(f"  {num} cannot run {WHERE[runtime][0]}:")
        groups = grouped_reasons(reasons)
        for group in groups[:MAX_GROUPS]:
            more = len(group.task_ids) - MAX_NAMED
            names = ", ".join(group.task_ids[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
            self.stdout.write(f"    {len(group.task_ids)}: {group.reason} ({names})")
        if len(groups) > MAX_GROUPS:
            self.stdout.write(
                f"    and {len(groups) - MAX_GROUPS} more reasons; each task's page has its own"
            )
