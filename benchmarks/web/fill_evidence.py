"""A sweep, a family of clones, prices, a report with a link, a rule of retention: over filled experiments."""

from __future__ import annotations

from random import Random

from django.contrib.auth.models import User

from benchmarks.web.fill_evaluations import NUM_COMPARED
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.analysis.lineage.family_tree import MAX_NODES
from webapp.analysis.series.chart_panels import PANELS
from webapp.experiments.models import (
    ArmStatus,
    Experiment,
    ExperimentStatus,
    MetricPoint,
    Sweep,
    SweepArm,
    SweepStatus,
    TeamPrices,
)
from webapp.experiments.sweep_plan import SweepPlan
from webapp.reports.frozen_content import MAX_TRAJECTORIES, Choices
from webapp.reports.models import Report, ReportLink
from webapp.reports.services.links import DEFAULT_DAYS, make_link, token_of
from webapp.reports.services.reports import write_version
from webapp.retention.models import RetentionRule
from webapp.sweeps.search_space import parse_axes
from webapp.trajectories.models import Trajectory

RATES = "optimiser.learning_rate = 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4"
CLIPS = "optimiser.max_grad_norm = 0.3, 1.0, 3.0"
NUM_SEEDS = 3
NUM_STEPS = 200
FIRST_OF_SWEEP = 100
"""Index of the experiment that becomes the first arm's first seed."""
FIRST_OF_FAMILY = 300
SERIES = ("rollout/success", "rollout/reward_mean", "loss/entropy", "optimiser/grad_norm")
BATCH = 5000


def fill_evidence(team: Team, user: User, experiments: list[Experiment]) -> None:
    """What the pages that compare and tell are made of; the experiments stay the ones that there are."""
    _fill_sweep(team, user, experiments[FIRST_OF_SWEEP:])
    _fill_family(experiments[FIRST_OF_FAMILY : FIRST_OF_FAMILY + 2 * MAX_NODES])
    TeamPrices.objects.create(team=team, gpu_hour=2.5, desktop_hour=0.04, million_completion_tokens=0.6)
    RetentionRule.objects.create(team=team, max_age_days=3650)
    _fill_report(team, user, experiments[:NUM_COMPARED])


def _fill_sweep(team: Team, user: User, experiments: list[Experiment]) -> None:
    config = ExperimentConfig()
    axes = parse_axes(f"{RATES}\n{CLIPS}", config)
    plan = SweepPlan(axes=axes, num_seeds=NUM_SEEDS, metric="rollout/success")
    sweep = Sweep.objects.create(
        team=team,
        owner=user,
        name="Rates and clips",
        config=config.model_dump(mode="json"),
        plan_values=plan.model_dump(mode="json"),
        status=SweepStatus.FINISHED,
    )
    arms = [
        SweepArm.objects.create(
            sweep=sweep,
            number=number,
            values={axes[0].path: rate, axes[1].path: clip},
            status=ArmStatus.FINISHED,
        )
        for number, (rate, clip) in enumerate(
            ((rate, clip) for rate in axes[0].values for clip in axes[1].values), start=1
        )
    ]
    chosen = experiments[: len(arms) * NUM_SEEDS]
    for place, experiment in enumerate(chosen):
        experiment.arm = arms[place // NUM_SEEDS]
        experiment.status = ExperimentStatus.FINISHED
    Experiment.objects.bulk_update(chosen, ["arm", "status"])
    _fill_points(chosen, SERIES[:1])


def _fill_family(experiments: list[Experiment]) -> None:
    """Each a clone of the one before it: twice as many as the page shows."""
    for place, experiment in enumerate(experiments):
        experiment.cloned_from = experiments[place - 1] if place else None
        experiment.step = NUM_STEPS
        changed = {"learning_rate": 1e-6 * (place // 2 + 1), "seed": place % 2}
        experiment.config = {**experiment.config, "optimiser": experiment.config["optimiser"] | changed}
    Experiment.objects.bulk_update(experiments, ["cloned_from", "step", "config"])
    _fill_points(experiments, SERIES)


def _fill_points(experiments: list[Experiment], names: tuple[str, ...]) -> None:
    random = Random(5)
    MetricPoint.objects.bulk_create(
        (
            MetricPoint(experiment=experiment, name=name, step=step, value=random.random())
            for experiment in experiments
            for name in names
            for step in range(1, NUM_STEPS + 1)
        ),
        batch_size=BATCH,
    )


def _fill_report(team: Team, user: User, experiments: list[Experiment]) -> None:
    """Every chart and table of six experiments, and as many trajectories as a report takes."""
    shown = Trajectory.objects.filter(team=team).order_by("id").values_list("pk", flat=True)
    choices = Choices(
        [experiment.pk for experiment in experiments],
        charts=[panel.title for panel in PANELS],
        with_tasks=True,
        with_config=True,
        trajectories=list(shown[:MAX_TRAJECTORIES]),
    )
    text = "What changed, and **why** we believe it.\n\n" * 40
    version = write_version(team=team, user=user, title="Six runs", text=text, choices=choices)
    make_link(version=version, user=user, days=DEFAULT_DAYS)


def evidence_pages(team_id: int) -> dict[str, str]:
    """Name -> path."""
    sweep = Sweep.objects.get(team_id=team_id)
    member = Experiment.objects.filter(cloned_from__team_id=team_id).order_by("id")[MAX_NODES]
    report = Report.objects.get(team_id=team_id)
    link = ReportLink.objects.get(version__report=report)
    return {
        "sweep, 24 arms x 3 seeds": f"/sweeps/{sweep.pk}/",
        "sweep, cost": f"/sweeps/{sweep.pk}/cost/",
        "sweep, charts": f"/sweeps/{sweep.pk}/charts/",
        "cost of an experiment": f"/experiments/{member.pk}/?tab=cost",
        "lineage, a family of 80": f"/experiments/{member.pk}/?tab=lineage",
        "prices": "/experiments/prices/",
        "reports": "/reports/",
        "report, 6 experiments": f"/reports/{report.pk}/",
        "report as a stranger sees it": f"/r/{token_of(link)}/",
        "storage": "/storage/",
    }
