"""The pieces of the experiment page: each has one template and one context, on first load and live alike."""

from collections.abc import Callable
from typing import Any

from django.db.models import F, OuterRef, Subquery
from django.urls import reverse

from training.contracts.stage_names import StageName
from training.contracts.types import FINAL_STATUSES, TrajectoryStatus
from training.planning.presets import load_preset
from webapp.accounts.access import MemberRequest
from webapp.analysis.alarms.root_alarms import causes_first, likely_cause
from webapp.analysis.costs.cost_rows import cost_rows
from webapp.analysis.costs.ledger import costs_of, usage_of
from webapp.analysis.evaluations.success_pairs import change_of_run, pairs_of
from webapp.analysis.groups.group_cards import groups
from webapp.analysis.groups.replay_effect import replay_effect
from webapp.analysis.lineage.ledger import lineage_of
from webapp.analysis.series.gpu_use import gpus_context
from webapp.analysis.verdict.sentence import verdict_context
from webapp.checkpoints.queries.checkpoint_rows import checkpoints_context
from webapp.experiment_pages import stage_progress
from webapp.experiment_pages.page_counts import trajectory_counts, updates_made
from webapp.experiments.knob_values import baseline_of, changed_knobs, flatten
from webapp.experiments.log_files import log_files
from webapp.experiments.models import (
    AlarmStatus,
    Experiment,
    ExperimentStatus,
)
from webapp.experiments.placement.waiting_reasons import why_waiting
from webapp.experiments.queries.evaluations import all_evaluations, is_on_demand
from webapp.experiments.queries.prices import prices_of
from webapp.experiments.stored_config import annotated_yaml
from webapp.lib.request_values import whole_number
from webapp.lib.turn_time import TurnTime, mean_time

Context = dict[str, Any]

TABS = {
    "overview": ("Overview", ("summary", "wall")),
    "desktops": ("Desktops", ("wall",)),
    "groups": ("Groups", ("groups",)),
    "log": ("Log", ("log",)),
    "config": ("Config", ("config",)),
    "checkpoints": ("Checkpoints", ("checkpoints",)),
    "evaluations": ("Evaluations", ("evaluations",)),
    "gpus": ("GPUs", ("gpus",)),
    "attempts": ("Attempts", ("attempts",)),
    "replay": ("Replay", ("replay",)),
    "cost": ("Cost", ("cost",)),
    "lineage": ("Lineage", ()),
}
"""Tab -> (title, parts below the header that come with the page; others are fetched once it is there)."""
TIMED_TRAJECTORIES = 48
TIMED_TURNS = 240
"""The mean is made of this many newest turns of this many newest trajectories, at most."""
SFT_STAGES = (StageName.DEMONSTRATIONS, StageName.SFT)
"""Stages whose steps are no steps of GRPO."""
NUM_INCIDENTS = 6
NUM_ALARMS = 2
MAX_TILES = 64
MAX_PAGE = 10_000
RECENT_PER_TILE = 4
"""Newest trajectories looked at per desktop, to find the latest one of each."""


def header(experiment: Experiment, request: MemberRequest) -> Context:
    """Status, message, ETA and which actions are possible."""
    stages = stage_progress.stage_views(experiment)
    return {
        "eta": stage_progress.experiment_eta(experiment, stages),
        "overall": stage_progress.overall_progress([view.stage for view in stages]) * 100,
        "why": why_waiting(experiment),
        "reward_control": experiment.settings.algorithm.reward_control,
        # "Running." beside the badge says nothing.
        "message": "" if experiment.message == f"{experiment.status.capitalize()}." else experiment.message,
        "can": experiment.possible_actions,
    }


def verdict(experiment: Experiment, request: MemberRequest) -> Context:
    """What came of the run in one line, and one remedy."""
    return verdict_context(experiment)


def incidents(experiment: Experiment, request: MemberRequest) -> Context:
    """Active alarms first, likely causes before their effects; then what happened lately."""
    alarms = causes_first(experiment.alarms.select_related("acknowledged_by"))
    for alarm in alarms:
        alarm.likely_cause = likely_cause(alarm, alarms)  # type: ignore[attr-defined]
    # While it runs, active ones need a person; afterwards one line says that there were some.
    has_ended = ExperimentStatus(experiment.status).is_final()
    shown = 0 if has_ended else min(NUM_ALARMS, sum(row.status == AlarmStatus.ACTIVE for row in alarms))
    return {
        "alarms": alarms[:shown],
        "more_alarms": alarms[shown:],
        "has_ended": has_ended,
        "incidents": list(experiment.incidents.all()[:NUM_INCIDENTS]),
    }


def stages(experiment: Experiment, request: MemberRequest) -> Context:
    return {"stages": stage_progress.stage_views(experiment)}


def summary(experiment: Experiment, request: MemberRequest) -> Context:
    """Headline numbers: success before and after, steps, trajectories by how they ended."""
    settings, evaluations = experiment.settings, list(experiment.evaluations.all())
    pairs = pairs_of(evaluations)
    before = next((pair for pair in pairs if pair.either.name == "before"), None)
    start = max((found.policy_version for found in evaluations if found.name in ("before", "sft")), default=0)
    num_steps = experiment.step if experiment.stage not in SFT_STAGES else 0
    num_updates = updates_made(experiment, start) if num_steps else 0
    return {
        "before": before,
        "last": pairs[-1] if pairs and pairs[-1] is not before else None,
        "change": change_of_run(pairs),
        "counts": trajectory_counts(experiment),
        "has_ended": ExperimentStatus(experiment.status).is_final(),
        "is_evaluation": settings.evaluation.only,
        "evaluates_before": settings.evaluation.before and settings.evaluation.num_tasks > 0,
        "evaluates_after": settings.evaluation.after and settings.evaluation.num_tasks > 0,
        "num_steps": settings.algorithm.num_steps,
        "num_updates": num_updates,
        "num_still": num_steps - num_updates,
        "time": _time_of_newest_turns(experiment),
    }


def _time_of_newest_turns(experiment: Experiment) -> TurnTime | None:
    trajectories = experiment.trajectories
    newest = trajectories.order_by("-pk").values("pk")[:TIMED_TRAJECTORIES]
    turns = _turns_model(experiment).objects.filter(trajectory__in=newest)
    measured = turns.filter(spent_ms__isnull=False).order_by("-pk").values_list("spent_ms", flat=True)
    return mean_time([spent for spent in measured[:TIMED_TURNS] if spent])


def _turns_model(experiment: Experiment) -> Any:
    """Of a room above this one."""
    return experiment.trajectories.model.turns.rel.related_model


def wall(experiment: Experiment, request: MemberRequest) -> Context:
    """The latest trajectory of every desktop of this experiment, with what it is doing."""
    desktops = experiment.settings.desktops
    wanted = min(MAX_TILES, desktops.num_desktops)
    rows = experiment.trajectories.exclude(desktop=None).select_related("task", "desktop")
    tiles: dict[int | None, Any] = {}
    turns = _turns_model(experiment).objects.filter(trajectory=OuterRef("pk"))
    answered = turns.filter(completed_at__isnull=False).order_by("-index")
    rows = rows.annotate(
        own_max_turns=F("task__spec__max_turns"),
        last_action=Subquery(answered.values("action")[:1]),
        last_parse_error=Subquery(answered.values("parse_error")[:1]),
    )
    for row in rows.defer("task__spec", "terms", "checks").order_by("-id")[: wanted * RECENT_PER_TILE]:
        tiles.setdefault(row.desktop_id, row)
    shown = sorted(tiles.values(), key=lambda row: row.desktop.name)[:wanted]
    return {
        "tiles": [
            {
                "trajectory": row,
                "max_turns": row.own_max_turns or desktops.max_turns,
                "is_final": TrajectoryStatus(row.status) in FINAL_STATUSES,
            }
            for row in shown
        ],
        "num_running": sum(TrajectoryStatus(row.status) not in FINAL_STATUSES for row in shown),
        "num_parked": trajectory_counts(experiment)["parked"],
    }


def evaluations(experiment: Experiment, request: MemberRequest) -> Context:
    return {
        "evaluations": [
            {
                "evaluation": found,
                "families": _families(found.per_family),
                "is_on_demand": is_on_demand(found, experiment),
            }
            for found in all_evaluations(experiment)
        ]
    }


def _families(per_family: dict[str, list[int]]) -> list[Context]:
    """What the agent solved and ended of each."""
    counts = [(name, won - sum(cut), total) for name, (won, total, *cut) in sorted(per_family.items())]
    return [
        {"name": name or "all", "won": won, "total": total, "percent": 100 * won / total if total else 0}
        for name, won, total in counts
    ]


def checkpoints(experiment: Experiment, request: MemberRequest) -> Context:
    page = whole_number(request.GET.get("page", "") or "1", "page", low=1, high=MAX_PAGE)
    return checkpoints_context(experiment, page)


def gpus(experiment: Experiment, request: MemberRequest) -> Context:
    """The GPUs of the host of the last attempt, as they were last seen."""
    return gpus_context(experiment)


def cost(experiment: Experiment, request: MemberRequest) -> Context:
    """Hours and tokens in all, per solved task and per accepted entry, at the team's prices."""
    found = costs_of(prices_of(experiment.team), [experiment.pk])[experiment.pk]
    return {
        "cost": found,
        "cost_rows": cost_rows(found),
        "usage": usage_of(experiment, found),
        "num_desktops": experiment.settings.desktops.num_desktops,
    }


def replay(experiment: Experiment, request: MemberRequest) -> Context:
    """What injections did to their tasks, and what the other families paid."""
    return {"effect": replay_effect(experiment)}


def lineage(experiment: Experiment, request: MemberRequest) -> Context:
    """Its family: what each changed from its parent, and which metrics moved."""
    return {"lineage": lineage_of(experiment)}


def attempts(experiment: Experiment, request: MemberRequest) -> Context:
    rows = experiment.attempts.prefetch_related("gang")
    return {
        "attempts": list(rows.order_by("-number").defer("policy_token", "gang_secret")),
        "all_incidents": list(experiment.incidents.all()[:100]),
    }


def config(experiment: Experiment, request: MemberRequest) -> Context:
    """The resolved config and what it changes against its preset (or the experiment it was cloned from)."""
    preset = load_preset(experiment.preset) if experiment.preset else None
    origin = experiment.cloned_from
    return {
        "yaml": annotated_yaml(experiment.settings, experiment.config, experiment.config_problems),
        "preset": preset,
        "origin": origin,
        "changes": changed_knobs(experiment.settings, baseline_of(preset)),
        "clone_changes": changed_knobs(experiment.settings, flatten(origin.settings)) if origin else [],
    }


def log(experiment: Experiment, request: MemberRequest) -> Context:
    files = log_files(experiment.pk)
    wanted = request.GET.get("file", "")
    names = [file.name for file in files]
    return {
        "log_files": files,
        "log_file": wanted if wanted in names else (names[0] if names else ""),
        "log_url": reverse("experiment-log", args=[experiment.pk]),
    }


PARTS: dict[str, Callable[[Experiment, MemberRequest], Context]] = {
    function.__name__: function
    for function in (
        header,
        verdict,
        incidents,
        stages,
        summary,
        wall,
        groups,
        evaluations,
        checkpoints,
        gpus,
        attempts,
        replay,
        cost,
        lineage,
        config,
        log,
    )
}


def context_of(part: str, experiment: Experiment, request: MemberRequest) -> Context:
    """What templates/experiments/parts/PART.html shows."""
    return PARTS[part](experiment, request)
