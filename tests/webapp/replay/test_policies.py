"""Rules tried before they are used, snapshots that experiments pin, and what an injection did."""

import pytest
from django.test import Client

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_task_set,
    make_team,
    make_trajectory,
)
from training.contracts.config import ExperimentConfig, parse_config
from training.contracts.outcome import SuccessRule
from webapp.launch.preflight.tasks_and_replay import replay_checks
from webapp.lib.request_values import BadValue
from webapp.replay.curation.dry_run import bars_of, dry_run, expected_share
from webapp.replay.curation.effect import effects_of
from webapp.replay.models import BufferSnapshot, ReplayUseRecord
from webapp.replay.queries.rules import Rules
from webapp.replay.queries.task_rates import Rate, recent_rates
from webapp.replay.services.injections import offers
from webapp.replay.services.labels import label_entry
from webapp.replay.services.snapshots import save_policy, take_snapshot
from webapp.trajectories.models import Trajectory

pytestmark = pytest.mark.django_db


@pytest.fixture
def task_set():
    return make_task_set("menus")


@pytest.fixture
def target(team, task_set):
    """The team's newest experiment: groups of 2, 4 groups a step."""
    values = {
        "tasks": {"task_set": task_set.name},
        "algorithm": {"group_size": 2, "groups_per_step": 4},
        "replay": {"enabled": True, "max_share": 0.25},
    }
    return make_experiment(team=team, config=parse_config(values).model_dump(mode="json"), policy_version=9)


def entries_of(task, target, number, verdict="accepted", **values):
    group = make_group(experiment=target, task=task)
    return [
        make_replay_entry(
            trajectory=make_trajectory(group=group, reward=0.5 + place / 10), verdict=verdict, **values
        )
        for place in range(number)
    ]


def entering(team, **rules):
    return {facts.pk for facts in dry_run(team, Rules.read(rules)).admission.entering}


def use(entry, experiment, step, ratio=None):
    return ReplayUseRecord.objects.create(
        entry=entry,
        experiment=experiment,
        group=make_group(experiment=experiment, task=entry.trajectory.task),
        replaced=entry.trajectory,
        step=step,
        advantage=1.0,
        importance_ratio=ratio,
    )


def test_each_rule_leaves_out_what_it_says_and_counts_it(team, target, task_set):
    one, other = make_task(task_set=task_set), make_task(task_set=task_set)
    low, mid, high = entries_of(one, target, 3)
    (gold,) = entries_of(other, target, 1, verdict="gold")
    entries_of(other, target, 1, verdict="rejected")
    entries_of(other, target, 1, verdict="inbox")
    assert entering(team) == {low.pk, mid.pk, high.pk, gold.pk}
    assert entering(team, only_gold=True) == {gold.pk}
    assert entering(team, max_per_task=1) == {high.pk, gold.pk}
    assert entering(team, min_reward=0.6) == {mid.pk, high.pk}
    use(low, target, 3, ratio=0.1)
    assert entering(team, min_ratio=0.5) == {mid.pk, high.pk, gold.pk}
    assert entering(team, max_age=8) == set(), "they were sampled by version 0, nine versions ago"
    found = dry_run(team, Rules(max_per_task=1)).admission
    assert dict(found.left_out) == {"enough of its task": 2, "rejected": 1, "waits in the inbox": 1}


def test_a_cluster_gives_no_more_than_its_share(team, target, task_set):
    task = make_task(task_set=task_set)
    alike = entries_of(task, target, 3, cluster=1)
    (alone,) = entries_of(task, target, 1, cluster=4)
    assert entering(team, max_per_cluster=1) == {alike[2].pk, alone.pk}


def test_the_page_says_how_many_enter_and_which_tasks_they_cover(team, anna, target, task_set):
    covered = make_task(task_set=task_set)
    make_task(task_set=task_set)
    make_task(task_set=task_set, split="heldout")
    entries = entries_of(covered, target, 3)
    use(entries[0], target, 2, ratio=0.9)
    web = Client()
    web.force_login(anna)
    page = web.get("/replay/policies/?max_per_task=2")
    found = page.context["found"]
    assert (found.num_entering, found.admission.num_entries) == (2, 3)
    assert (found.num_covered, found.num_tasks) == (1, 2)
    assert web.get("/replay/policies/?max_per_task=0").status_code == 400
    assert "max_age" in web.get("/replay/policies/?max_age=x").content.decode()


def test_the_expected_share_is_that_of_independent_tries():
    rates = {1: Rate(10, 0), 2: Rate(10, 5)}
    limits = {"group_size": 2, "groups_per_step": 4, "max_share": 0.25, "rule": SuccessRule.ENDED}
    found = expected_share(rates, {1, 2}, **limits)
    # Task 1 always fails as a group; task 2 fails in 1/4 and differs in 1/2 of its groups.
    assert found.failed_groups == pytest.approx(4 * (1 + 0.25) / 2)
    assert found.share == pytest.approx(0.25), "2.5 of 7 members would be more than a quarter"
    without = expected_share(rates, {2}, **limits | {"max_share": 0.5})
    assert without.share == pytest.approx(0.5 / (2 * (1 + 0.5)))
    assert expected_share({1: Rate(3, 0)}, set(), **limits).share == 0
    reached = {1: Rate(10, 0, 10)}
    assert expected_share(reached, {1}, **limits).failed_groups == 4, "rewards pay nothing at a limit"
    assert expected_share(reached, {1}, **limits | {"rule": SuccessRule.STATE}).failed_groups == 0


def test_rates_tell_what_a_limit_ended(team):
    task = make_task()
    for status, score in (("terminated", 1.0), ("truncated", 1.0), ("terminated", 0.0)):
        make_trajectory(group=make_group(team=team, task=task), status=status, reward=score)
    assert recent_rates(team.pk) == {task.pk: Rate(3, 1, 1)}


def test_ratios_fall_between_the_edges():
    assert [bar.num for bar in bars_of([0.0, 0.19, 0.2, 1.0, 9.0])] == [2, 1, 0, 1, 0, 0, 1]


def test_versions_of_a_policy_never_change(team, anna):
    first = save_policy(team=team, user=anna, name="few", rules=Rules(max_per_task=1))
    second = save_policy(team=team, user=anna, name="few", rules=Rules(max_per_task=2))
    assert (str(first), str(second)) == ("few.v1", "few.v2")
    first.refresh_from_db()
    assert first.rules == {"max_per_task": 1}
    for name in ("", "Few", "few.v1", "a" * 61):
        with pytest.raises(BadValue, match="name"):
            save_policy(team=team, user=anna, name=name, rules=Rules())


def test_a_snapshot_keeps_labels_and_edits_that_change_afterwards(team, anna, target, task_set):
    task = make_task(task_set=task_set)
    kept, gold = entries_of(task, target, 2)
    label_entry(entry=gold, user=anna, verdict="gold", edit={"first": 1})
    policy = save_policy(team=team, user=anna, name="all", rules=Rules())
    snapshot = take_snapshot(policy=policy, user=anna, name="before")
    label_entry(entry=kept, user=anna, verdict="rejected")
    label_entry(entry=gold, user=anna, verdict="accepted", edit={})
    (late,) = entries_of(task, target, 1)
    pinned = offers(team=team, task=task, snapshot=snapshot.pk)
    assert [(one.entry.pk, one.label, one.edit.first) for one in pinned] == [
        (gold.pk, "gold", 1),
        (kept.pk, "accepted", None),
    ]
    live = offers(team=team, task=task)
    assert [(one.entry.pk, one.edit.first) for one in live] == [(late.pk, None), (gold.pk, None)]
    assert offers(team=make_team(), task=task, snapshot=snapshot.pk) == []


def test_a_policy_that_lets_nothing_in_takes_no_snapshot(team, anna):
    policy = save_policy(team=team, user=anna, name="all", rules=Rules())
    with pytest.raises(BadValue, match="nothing to keep"):
        take_snapshot(policy=policy, user=anna, name="empty")
    assert not BufferSnapshot.objects.exists()


def test_preflight_refuses_a_snapshot_of_another_team(team, anna, target, task_set):
    entries_of(make_task(task_set=task_set), target, 1)
    policy = save_policy(team=team, user=anna, name="all", rules=Rules())
    snapshot = take_snapshot(policy=policy, user=anna, name="one")

    def check(of, number):
        values = {"tasks": {"task_set": "menus"}, "replay": {"enabled": True, "snapshot": number}}
        (found,) = replay_checks(parse_config(values), of)
        return found.level

    assert [check(team, snapshot.pk), check(make_team(), snapshot.pk), check(team, 999)] == [
        "good", "bad", "bad",
    ]  # fmt: skip
    assert ExperimentConfig().replay.snapshot == 0


def test_the_effect_of_an_entry_is_its_tasks_rise_beyond_that_of_others(team, target, task_set):
    own, other = make_task(task_set=task_set), make_task(task_set=task_set)
    (entry,) = entries_of(own, target, 1)
    use(entry, target, 5)
    Trajectory.objects.filter(pk=entry.trajectory_id).update(step=99)
    tries = [(own, 5, 0.0), (own, 4, 0.0), (own, 6, 1.0), (own, 7, 0.0), (other, 5, 0.0), (other, 6, 0.0)]
    for task, step, score in tries:
        group = make_group(experiment=target, task=task, step=step)
        make_trajectory(group=group, reward=score, step=step)
    make_trajectory(group=make_group(experiment=target, task=own, step=60), reward=1.0, step=60)
    (effect,) = effects_of(entry)
    assert (effect.task.num_before, effect.task.num_after, effect.task.after) == (2, 2, 0.5)
    assert (effect.others.num_before, effect.others.num_after) == (1, 1)
    assert effect.beyond_others == pytest.approx(0.5)
