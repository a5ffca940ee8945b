"""The page of a sweep and its live part: few queries, however many arms."""

import pytest
from django.test import Client

from testing.factories import make_team, make_user
from training.contracts.config import ExperimentConfig
from webapp.experiments.models import Experiment, ExperimentStatus, MetricPoint
from webapp.experiments.sweeps import steering
from webapp.experiments.sweeps.plan import SweepPlan
from webapp.experiments.sweeps.search_space import parse_axes

pytestmark = pytest.mark.django_db
MAX_QUERIES = 10
"""Session and person included."""


def test_a_sweep_shows_its_arms_and_cost_with_few_queries(client: Client, django_assert_max_num_queries):
    """Sums over its trajectories are asked for by the cost alone: they grow with the runs."""
    team, config = make_team(), ExperimentConfig()
    client.force_login(make_user("viewer", team=team))
    axes = parse_axes("optimiser.learning_rate = 1e-6, 3e-6, 1e-5, 3e-5", config)
    plan = SweepPlan(axes=axes, num_seeds=2, metric="rollout/success")
    sweep = steering.launch_sweep(team=team, owner=None, name="rates", config=config, plan=plan)
    for experiment in Experiment.objects.filter(arm__sweep=sweep):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=1, value=0.5)
    Experiment.objects.filter(arm__sweep=sweep).update(status=ExperimentStatus.FINISHED)
    for part in ("", "rows/"):
        client.get(f"/sweeps/{sweep.pk}/{part}")
        with django_assert_max_num_queries(MAX_QUERIES) as queries:
            page = client.get(f"/sweeps/{sweep.pk}/{part}").content.decode()
        assert not any("trajectories_trajectory" in query["sql"] for query in queries.captured_queries)
        assert page.count('id="arm-') == sweep.arms.count() > 0
    with django_assert_max_num_queries(MAX_QUERIES):
        cost = client.get(f"/sweeps/{sweep.pk}/cost/").content.decode()
    assert "GPU-hours" in cost
