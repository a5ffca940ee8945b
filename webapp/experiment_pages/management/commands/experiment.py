"""Where an experiment stands, as JSON; with a verb: pause, resume, cancel, evaluate or export."""

import json
import time
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from training.contracts.outcome import SuccessRule
from webapp.analysis.evaluations.success_pairs import change_of_run, pairs_of
from webapp.analysis.verdict.sentence import described
from webapp.checkpoints.services import exports
from webapp.checkpoints.services.evaluations import HowToEvaluate, request_evaluation
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.experiments.queries.checkpoints import CheckpointRefused, find_checkpoint
from webapp.experiments.services.experiments import request_cancel, request_pause, resume_experiment

VERBS = {
    "pause": request_pause,
    "resume": resume_experiment,
    "cancel": request_cancel,
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
        parser.add_argument("--samples", type=int, default=1, help="evaluate: sampled trajectories per task")
        parser.add_argument(
            "--temperature", type=float, help="evaluate: of the sampled pass (default: of training); 0 = none"
        )
        parser.add_argument("--no-greedy", action="store_true", help="evaluate: leave the greedy pass out")
        parser.add_argument("--metrics", nargs="*", default=[], help="series, e.g. rollout/success")
        parser.add_argument(
            "--watch",
            type=float,
            default=0.0,
            metavar="SECONDS",
            help="look this often, print a line when something changed, stop when the experiment has ended",
        )
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
        last = ""
        while True:
            experiment.refresh_from_db()
            has_ended = ExperimentStatus(experiment.status).is_final()
            values = describe(experiment)
            if options["metrics"]:
                values["metrics"] = series(experiment, options["metrics"])
            line = json.dumps(values, default=str)
            if line != last:
                self.stdout.write(line)
                self.stdout.flush()
            if has_ended or not options["watch"]:
                return
            last = line
            time.sleep(options["watch"])


def ask_checkpoint(experiment: Experiment, options: dict[str, Any]) -> dict[str, Any]:
    """Evaluate or export a checkpoint; what was queued, in plain values."""
    try:
        checkpoint = find_checkpoint(experiment, options["checkpoint"])
        if options["verb"] == "export":
            export = exports.request_export(checkpoint=checkpoint, user=None, dtype=options["dtype"])
            return {"export": export.pk, "status": export.status, "step": checkpoint.step}
        queued = request_evaluation(
            checkpoint=checkpoint,
            user=None,
            how=HowToEvaluate(
                num_tasks=options["tasks"],
                samples_per_task=options["samples"],
                temperature=options["temperature"],
                greedy=not options["no_greedy"],
            ),
        )
    except CheckpointRefused as refused:
        name = {"num_tasks": "tasks", "samples_per_task": "samples"}.get(refused.field, refused.field)
        raise CommandError(f"--{name}: {refused}" if name else str(refused)) from refused
    return {"experiment": queued.pk, "status": queued.status, "step": checkpoint.step}


EVALUATION = (
    *("name", "step", "temperature", "samples_per_task", "num_tasks", "num_requested", "num_errored"),
    *("is_complete", "num_samples", "num_success"),
    *("success", "low", "high", "num_solved_at_limit", "solved", "solved_low", "solved_high"),
    *("mean_score", "truncated_share", "unparsable_share", "per_family", "eyes", "at"),
)
"""What is printed of an evaluation: names of `Evaluation`."""


def describe(experiment: Experiment) -> dict[str, Any]:
    """Status, stages, evaluations and checkpoints of an experiment in plain values."""
    return {
        "id": experiment.pk,
        "name": experiment.name,
        "status": experiment.status,
        "message": experiment.message,
        "waiting_because": why_waiting(experiment),
        "step": experiment.step,
        "policy_version": experiment.policy_version,
        "created_at": experiment.created_at,
        "started_at": experiment.started_at,
        "ended_at": experiment.ended_at,
        "stages": list(experiment.stages.values("name", "status", "done", "total", "started_at", "ended_at")),
        "evaluations": [
            {name: getattr(found, name) for name in EVALUATION} for found in experiment.evaluations.all()
        ],
        "success_change": success_change(experiment),
        "success_change_of_state": success_change(experiment, SuccessRule.STATE),
        "verdict": described(experiment),
        "alarms": list(experiment.alarms.values("name", "status", "step", "value", "message")),
        "incidents": list(experiment.incidents.values("kind", "message", "at")),
        "attempts": [
            {
                **{name: getattr(one, name) for name in ("number", "status", "reason", "resumed_step")},
                "workers": one.workers,
            }
            for one in experiment.attempts.order_by("number").prefetch_related("gang")
        ],
        "checkpoints": list(
            experiment.checkpoints.filter(deleted_at=None)
            .order_by("pk")
            .values("step", "policy_version", "path", "is_best", "success")
        ),
    }


def success_change(experiment: Experiment, rule: SuccessRule | None = None) -> dict[str, Any] | None:
    """Paired tests from the evaluation before the first step to the newest; None until there are two."""
    change = change_of_run(pairs_of(experiment.evaluations.all()), rule)
    if change is None:
        return None
    paired = {kind.lower(): asdict(found) for kind, found in change.parts}
    return {
        "sampled": None,
        "greedy": None,
        **paired,
        "is_sharpened": change.is_sharpened,
        "rule": change.rule,
        "differences": change.differences,
    }


def series(experiment: Experiment, names: list[str]) -> dict[str, list[tuple[int, float]]]:
    """Name -> (step, value) in order of steps; a name that was never reported has none."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    points = experiment.metrics.filter(name__in=names).order_by("step")
    for name, step, value in points.values_list("name", "step", "value"):
        found[name].append((step, value))
    return found
