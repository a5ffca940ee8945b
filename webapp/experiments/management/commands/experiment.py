"""Where an experiment stands, as JSON; with a verb: pause, resume, cancel, evaluate or export."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.experiments.checkpoints import evaluate_on_demand, exports, usable_checkpoints
from webapp.experiments.lifecycle import operator_actions
from webapp.experiments.models import Experiment

VERBS = {
    "pause": operator_actions.request_pause,
    "resume": operator_actions.resume_experiment,
    "cancel": operator_actions.request_cancel,
}
CHECKPOINT_VERBS = ("evaluate", "export")


class Command(BaseCommand):
    help = (
        "Print an experiment's status as JSON; pause, resume or cancel it; evaluate or export a checkpoint."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int)
        parser.add_argument("verb", nargs="?", choices=sorted((*VERBS, *CHECKPOINT_VERBS)))
        parser.add_argument(
            "--checkpoint", default="best", help='evaluate, export: best (default), latest, "step N" or an id'
        )
        parser.add_argument("--tasks", type=int, default=72, help="evaluate: held-out tasks")
        parser.add_argument("--temperature", type=float, default=1.0, help="evaluate: 0 = greedy")
        parser.add_argument("--metrics", nargs="*", default=[], help="series, e.g. rollout/success")
        parser.add_argument("--dtype", default="bfloat16", help=f"export: {', '.join(exports.DTYPES)}")

    def handle(self, *args: Any, **options: Any) -> None:
        experiment = Experiment.objects.filter(pk=options["id"]).first()
        if experiment is None:
            raise CommandError(f"no experiment {options['id']}")
        if options["verb"] in CHECKPOINT_VERBS:
            self.stdout.write(json.dumps(ask_checkpoint(experiment, options)))
            return
        if options["verb"] and not VERBS[options["verb"]](experiment=experiment):
            raise CommandError(f"cannot {options['verb']} an experiment that is {experiment.status}")
        experiment.refresh_from_db()
        values = describe(experiment)
        if options["metrics"]:
            values["metrics"] = series(experiment, options["metrics"])
        self.stdout.write(json.dumps(values, default=str))


def ask_checkpoint(experiment: Experiment, options: dict[str, Any]) -> dict[str, Any]:
    """Evaluate or export a checkpoint; what was queued, in plain values."""
    try:
        checkpoint = usable_checkpoints.find_checkpoint(experiment, options["checkpoint"])
        if options["verb"] == "export":
            export = exports.request_export(checkpoint=checkpoint, user=None, dtype=options["dtype"])
            return {"export": export.pk, "status": export.status, "step": checkpoint.step}
        queued = evaluate_on_demand.request_evaluation(
            checkpoint=checkpoint,
            user=None,
            num_tasks=options["tasks"],
            temperature=options["temperature"],
        )
    except usable_checkpoints.CheckpointRefused as refused:
        name = {"num_tasks": "--tasks: "}.get(refused.field, f"--{refused.field}: " if refused.field else "")
        raise CommandError(f"{name}{refused}") from refused
    return {"experiment": queued.pk, "status": queued.status, "step": checkpoint.step}


def describe(experiment: Experiment) -> dict[str, Any]:
    """Status, stages, evaluations and checkpoints of an experiment in plain values."""
    return {
        "id": experiment.pk,
        "name": experiment.name,
        "status": experiment.status,
        "message": experiment.message,
        "step": experiment.step,
        "policy_version": experiment.policy_version,
        "created_at": experiment.created_at,
        "started_at": experiment.started_at,
        "ended_at": experiment.ended_at,
        "stages": list(experiment.stages.values("name", "status", "done", "total", "started_at", "ended_at")),
        "evaluations": list(
            experiment.evaluations.values(
                *("name", "step", "num_tasks", "num_success", "success", "low", "high"),
                *("per_family", "temperature", "at"),
            )
        ),
        "alarms": list(experiment.alarms.values("name", "step", "value", "message")),
        "incidents": list(experiment.incidents.values("kind", "message", "at")),
        "attempts": list(
            experiment.attempts.order_by("number").values("number", "status", "reason", "resumed_step")
        ),
        "checkpoints": list(
            experiment.checkpoints.filter(deleted_at=None)
            .order_by("pk")
            .values("step", "policy_version", "path", "is_best", "success")
        ),
    }


def series(experiment: Experiment, names: list[str]) -> dict[str, list[tuple[int, float]]]:
    """Name -> (step, value) in order of steps; a name that was never reported has none."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    points = experiment.metrics.filter(name__in=names).order_by("step")
    for name, step, value in points.values_list("name", "step", "value"):
        found[name].append((step, value))
    return found
