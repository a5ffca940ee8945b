"""Prove a task set on the running env workers: oracle = 1.0 and doing nothing = 0.0, per task."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from pydantic import ValidationError

from training.contracts.config import DEFAULT_PROVIDER, PROVIDERS, DesktopConfig
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.trajectories.task_verification import NothingHappens, Verdict, verify

VERIFIABLE = sorted(name for name, info in PROVIDERS.items() if info.proof_stall_s)


class Command(BaseCommand):
    help = (
        "Run the oracle and the do-nothing check of every supported task of a set; needs running env workers "
        "(make up). Exits with an error when one fails."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("task_set", nargs="?", default="first-desk")
        parser.add_argument("--family", help="only this family")
        parser.add_argument("--limit", type=int, default=0, help="tasks per family, spread evenly; 0 = all")
        parser.add_argument("--team", help="team that owns the trajectories; default: the oldest")
        parser.add_argument(
            "--provider", default=DEFAULT_PROVIDER, choices=VERIFIABLE, help="desktops to run on"
        )
        parser.add_argument(
            "--image", default="", help="desktops.PROVIDER.image; default: the provider's own"
        )
        parser.add_argument(
            "--stall", type=int, help="seconds without a result after which to give up; default: by provider"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        desktops = desktops_of(options["provider"], options["image"])
        tasks = list(self._tasks(options, desktops))
        team = (
            Team.objects.filter(**({"name": options["team"]} if options["team"] else {}))
            .order_by("pk")
            .first()
        )
        if team is None:
            raise CommandError(
                "there is no such team; sign-in set-up (manage.py ensure_admin) makes the first one"
            )
        try:
            verdicts = verify(
                tasks,
                team_id=team.pk,
                desktops=desktops,
                stall_limit=timedelta(seconds=options["stall"] or desktops.provider_info.proof_stall_s),
                on_verdict=self._tell,
            )
        except NothingHappens as error:
            raise CommandError(str(error)) from error
        self._report(verdicts)
        failed = sum(not verdict.holds for verdict in verdicts)
        if failed:
            raise CommandError(f"{failed} of {len(verdicts)} tasks do not hold")

    def _tasks(self, options: dict[str, Any], desktops: DesktopConfig) -> Iterator[TaskRecord]:
        task_set = TaskSet.objects.filter(name=options["task_set"]).first()
        if task_set is None:
            raise CommandError(f"there is no task set {options['task_set']}; import it with import_tasks")
        rows = TaskRecord.objects.current().runnable(desktops).filter(task_set=task_set).order_by("task_id")
        if options["family"]:
            rows = rows.filter(family=options["family"])
        families: dict[str, list[TaskRecord]] = defaultdict(list)
        for row in rows:
            families[row.family].append(row)
        if not families:
            raise CommandError(
                f"{task_set.name} has no tasks of family {options['family'] or 'any'} "
                f"that {desktops.provider} desktops can run"
            )
        for tasks in families.values():
            count = min(options["limit"] or len(tasks), len(tasks))
            yield from (tasks[len(tasks) * index // count] for index in range(count))

    def _tell(self, verdict: Verdict) -> None:
        if not verdict.holds:
            scores = f"oracle {verdict.oracle_score}, idle {verdict.idle_score}"
            self.stdout.write(f"FAILED {verdict.task.task_id}: {scores} {verdict.error}".rstrip())

    def _report(self, verdicts: list[Verdict]) -> None:
        families: dict[str, list[Verdict]] = defaultdict(list)
        for verdict in verdicts:
            families[verdict.task.family or "(none)"].append(verdict)
        for name, group in sorted(families.items()):
            oracle = sum(verdict.oracle_score == 1.0 for verdict in group)
            idle = sum(verdict.idle_score == 0.0 for verdict in group)
            self.stdout.write(
                f"{name:12} {len(group):5} tasks   oracle 1.0: {oracle:5}   do-nothing 0.0: {idle:5}"
            )


def desktops_of(provider: str, image: str) -> DesktopConfig:
    """Desktops of this provider and image, with time for its speed. Raises CommandError."""
    limit_s = PROVIDERS[provider].proof_trajectory_s
    section = {provider: {"image": image}} if image else {}
    try:
        return DesktopConfig.model_validate(
            {"provider": provider, "trajectory_timeout_s": limit_s, **section}
        )
    except ValidationError as error:
        raise CommandError(f"--image: {error.errors()[0]['msg']}") from error
