"""The charts in groups; that every reported metric is on one: tests/integration/test_metrics_on_charts.py."""

from itertools import groupby

import pytest

from testing.factories import make_experiment
from training.contracts.config import ExperimentConfig
from webapp.analysis.series.chart_panels import PANELS, panels_of


def test_panels_of_a_group_follow_each_other_and_explain_themselves() -> None:
    groups = [group for group, _ in groupby(panel.group for panel in PANELS)]
    assert len(groups) == len(set(groups))
    assert [panel.title for panel in PANELS if not panel.help.endswith(".")] == []


@pytest.mark.django_db
def test_a_panel_shows_the_limit_of_the_experiments_alarm() -> None:
    config = ExperimentConfig(alarms={"zero_variance_fraction": 0.6}, algorithm={"max_staleness": 3})
    panels = panels_of(make_experiment(config=config.model_dump(mode="json")))
    limits = {panel["limit_of"]: panel["limit"] for panel in panels if panel["limit_of"]}
    assert limits["alarms.zero_variance_fraction"] == 0.6
    assert limits["algorithm.max_staleness"] == 3
    assert None not in limits.values()
