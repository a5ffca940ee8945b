"""What an attempt left behind the checkpoint from which the next one went on: marked, and counted nowhere."""

from collections.abc import AsyncIterator
from io import BytesIO

import pyarrow.parquet as pq
import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_attempt, make_experiment, make_group, make_team, make_trajectory, make_user
from testing.page_text import page_text
from webapp.accounts.models import Role
from webapp.analysis.series.metric_series import series_of, whole_series
from webapp.experiment_pages.page_counts import trajectory_counts
from webapp.experiments.models import CheckpointRecord, Experiment, MetricPoint
from webapp.experiments.queries.rows_behind_resume import lost_groups
from webapp.rewards_lab.slices import rows_of
from webapp.trajectories.models import Group

pytestmark = pytest.mark.django_db


def group_of(experiment: Experiment, attempt: int, step: int, purpose: str = "train", **members) -> Group:
    group = make_group(
        experiment=experiment, attempt=attempt, step=step, purpose=purpose, size=2, num_final=2, num_scored=2
    )
    for member in range(2):
        make_trajectory(group=group, member=member, turns=1, step=step, **members)
    return group


@pytest.fixture
def resumed() -> Experiment:
    """Attempt 1 got to step 31 and lost it; attempt 2 went on from 30."""
    experiment = make_experiment(team=make_team(), step=31, policy_version=31)
    make_attempt(experiment, number=1)
    make_attempt(experiment, number=2, resumed_step=30)
    return experiment


@pytest.fixture
def groups(resumed: Experiment) -> dict[str, Group]:
    return {
        "trained": group_of(resumed, 1, 30),
        "lost": group_of(resumed, 1, 31),
        "evaluated": group_of(resumed, 1, 31, "evaluation"),
        "again": group_of(resumed, 2, 31),
    }


def test_groups_behind_the_checkpoint_are_lost_and_no_others(resumed: Experiment, groups: dict[str, Group]):
    assert list(resumed.groups.filter(lost_groups())) == [groups["lost"]]


def test_a_third_attempt_that_began_anew_loses_all_before_it(resumed: Experiment, groups: dict[str, Group]):
    make_attempt(resumed, number=3)
    found = resumed.groups.filter(lost_groups()).order_by("pk")
    assert list(found) == [groups["trained"], groups["lost"], groups["again"]]


def test_without_a_second_attempt_nothing_is_lost():
    experiment = make_experiment()
    make_attempt(experiment)
    group_of(experiment, 1, 7)
    assert not experiment.groups.filter(lost_groups()).exists()
    assert trajectory_counts(experiment)["scored"] == 2


def test_counts_and_reward_lab_leave_them_out(resumed: Experiment, groups: dict[str, Group]):
    group_of(resumed, 2, 32, status="cancelled")
    counts = trajectory_counts(resumed)
    assert (counts["total"], counts["scored"], counts["cancelled"], counts["lost"]) == (8, 6, 2, 2)
    found = rows_of(resumed.team_id, f"train-{resumed.pk}").values_list("group", flat=True)
    assert set(found) == {groups["trained"].pk, groups["again"].pk}
    assert rows_of(resumed.team_id, f"evaluation-{resumed.pk}").count() == 2


def test_pages_mark_them(client: Client, resumed: Experiment, groups: dict[str, Group]):
    group_of(resumed, 2, 32, status="cancelled")
    client.force_login(make_user(Role.VIEWER, team=resumed.team))
    home = f"/experiments/{resumed.pk}/"
    overview = page_text(client.get(home))
    assert "2 more of a lost attempt" in overview
    assert "2 cancelled" in overview
    tab = page_text(client.get(home, {"tab": "groups"}))
    assert tab.count("not trained on") == 1
    shown = page_text(client.get(f"{home}parts/groups/"))
    assert f'id="group-{groups["again"].pk}"' in shown
    assert f'id="group-{groups["lost"].pk}"' not in shown
    assert "not trained on: attempt 1" in page_text(client.get(f"/groups/{groups['lost'].pk}/"))
    assert "not trained on" not in page_text(client.get(f"/groups/{groups['again'].pk}/"))


def test_the_export_of_what_was_trained_on_leaves_them_out(
    client: Client, resumed: Experiment, groups: dict[str, Group]
):
    client.force_login(make_user(Role.VIEWER, team=resumed.team))
    answer = client.get(f"/api/v1/experiments/{resumed.pk}/trajectories", {"purpose": "train"})
    table = pq.read_table(BytesIO(async_to_sync(_joined)(answer.streaming_content)))
    assert set(table["group_id"].to_pylist()) == {groups["trained"].pk, groups["again"].pk}


async def _joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


def test_curves_end_where_the_living_attempt_is(resumed: Experiment):
    """Attempt 1 had got to step 33, SFT to its own step 200; attempt 2 is at 31."""
    for attempt, name, step in [
        (1, "loss/total", 30),
        (2, "loss/total", 31),
        (1, "loss/total", 33),
        (1, "sft/loss", 200),
    ]:
        MetricPoint.objects.create(experiment=resumed, name=name, step=step, value=1.0, attempt=attempt)
    assert series_of(resumed)["loss/total"]["x"] == [30, 31]
    assert series_of(resumed)["sft/loss"]["x"] == [200]
    assert whole_series(resumed, ["loss/total"])["loss/total"]["x"] == [30, 31]


def test_only_updates_that_were_made_count_as_optimiser_steps(client: Client):
    """Six steps, of which one moved the weights: the rest had no group to learn from."""
    experiment = make_experiment(team=make_team(), status="finished", step=6, policy_version=1)
    make_evaluation(experiment, name="before", policy_version=0)
    client.force_login(make_user(Role.VIEWER, team=experiment.team))
    page = page_text(client.get(f"/experiments/{experiment.pk}/"))
    assert '<span class="stat-value">1 <small>/' in page
    assert "5 of 6 steps left the weights as they were" in page


def test_a_roll_back_and_sft_are_no_updates_of_grpo(client: Client):
    experiment = make_experiment(team=make_team(), status="finished", step=6, policy_version=10)
    make_evaluation(experiment, name="before", policy_version=3)
    MetricPoint.objects.create(experiment=experiment, name="checkpoint/rolled_back", step=4, value=1.0)
    client.force_login(make_user(Role.VIEWER, team=experiment.team))
    page = page_text(client.get(f"/experiments/{experiment.pk}/"))
    assert '<span class="stat-value">6 <small>' in page
    assert "left the weights" not in page


def test_checkpoints_with_equal_weights_say_so(client: Client):
    experiment = make_experiment(team=make_team(), status="finished", step=6, policy_version=1)
    for step, version in ((0, 0), (5, 1), (6, 1)):
        CheckpointRecord.objects.create(
            experiment=experiment, step=step, policy_version=version, path=f"/data/{step}"
        )
    make_evaluation(experiment, name="after", step=6, policy_version=1)
    client.force_login(make_user(Role.VIEWER, team=experiment.team))
    page = page_text(client.get(f"/experiments/{experiment.pk}/", {"tab": "checkpoints"}))
    assert "Same weights as step 5" in page
    assert "Same weights as step 6" in page
    assert page.count("Same weights") == 2
    assert page.count("After, at step 6") == 1, "the row of step 5 says whose result it shows"
