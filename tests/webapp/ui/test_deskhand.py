"""Numbers as pages print them."""

import pytest

from training.statistics.paired_statistics import PairedChange
from webapp.analysis.templatetags.changes import as_points, points, points_interval
from webapp.ui.templatetags.deskhand import signed


@pytest.mark.parametrize(
    ("value", "shown"),
    [(4.4, "+4"), (-11.0, "−11"), (0.0, "0"), (-0.0, "0"), (0.4, "0"), (-0.4, "0"), (None, "—"), ("", "—")],
)
def test_points_have_a_sign_unless_they_round_to_nothing(value: float | None, shown: str):
    assert points(value) == shown


def test_a_difference_of_shares_is_shown_in_points():
    assert [as_points(share) for share in (0.045, -0.2, -0.001, None)] == ["+5", "−20", "0", "—"]


def test_an_interval_names_its_unit_once():
    change = PairedChange(num_tasks=3, fixed=1, regressed=0, difference=1 / 3, low=0.0, high=2 / 3, p=1.0)
    assert points_interval(change) == "0 to +67 points"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "+0.50"), (-0.5, "−0.50"), (0.004, "0.00"), (-0.004, "0.00"), (None, "—")]
)
def test_rewards_have_a_sign_unless_they_round_to_nothing(value: float | None, shown: str):
    assert signed(value) == shown
