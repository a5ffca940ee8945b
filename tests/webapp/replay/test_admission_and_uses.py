"""What enters the inbox, what training may use of it, and what is kept of each use."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import ReplaySkip, ReplayUse, SkipReason
from training.contracts.types import TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.replay.models import ReplayEntry, ReplaySkipRecord, ReplayUseRecord
from webapp.replay.services.clusters import compare_waiting
from webapp.replay.services.inbox import offer_to_inbox
from webapp.replay.services.injections import offers, record_skips, record_uses
from webapp.replay.services.labels import follow_edit, label_entry
from webapp.replay.services.parts import split_entry
from webapp.trajectories.models import TurnRecord
from webapp.worker_door.trajectories import finish

pytestmark = pytest.mark.django_db


def test_a_solved_training_trajectory_enters_the_inbox_once():
    trajectory = make_trajectory(turns=3, reward=1.0)
    first = offer_to_inbox(trajectory=trajectory)
    assert offer_to_inbox(trajectory=trajectory) == first
    assert (first.verdict, first.family, first.num_still) == ("inbox", trajectory.family, 1)
    assert ReplayEntry.objects.count() == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda entry: offer_to_inbox(trajectory=entry.trajectory),
        follow_edit,
        lambda entry: split_entry(entry=entry, user=make_user(), at=1),
        lambda _entry: list(compare_waiting()),
    ],
    ids=["offer", "edit", "split", "clusters"],
)
def test_what_reads_turns_asks_no_more_for_long_ones(read):
    asked = []
    for turns in (3, 9):
        entry = make_replay_entry(turns=turns)
        with CaptureQueriesContext(connection) as queries:
            read(entry)
        found = [one["sql"] for one in queries if one["sql"].startswith("SELECT")]
        asked.append(len([sql for sql in found if 'FROM "trajectories_turnrecord"' in sql]))
    assert asked[0] == asked[1] > 0


@pytest.mark.parametrize(
    "values",
    [
        {"reward": 0.3},
        {"status": "errored", "reward": None},
        {"status": "running", "reward": None},
    ],
)
def test_what_was_not_solved_never_enters(values):
    assert offer_to_inbox(trajectory=make_trajectory(**values)) is None
    assert not ReplayEntry.objects.exists()


@pytest.mark.parametrize(
    ("purpose", "source", "is_kept"),
    [
        ("train", "policy", True),
        ("evaluation", "policy", False),
        ("verification", "scripted", False),
        ("demonstration", "oracle", True),
    ],
)
def test_only_training_and_demonstrations_feed_the_buffer(purpose, source, is_kept):
    group = make_group(purpose=purpose)
    trajectory = make_trajectory(group=group, reward=1.0, source=source)
    assert (offer_to_inbox(trajectory=trajectory) is not None) is is_kept


@pytest.mark.parametrize("is_on", [True, False])
def test_an_oracles_demonstration_is_offered_where_its_experiment_uses_replay(is_on):
    config = ExperimentConfig.model_validate({"replay": {"enabled": is_on}}).model_dump(mode="json")
    group = make_group(experiment=make_experiment(config=config), purpose="demonstration")
    row = make_trajectory(group=group, source="oracle", status="evaluating", reward=None)
    finish(row.pk, TrajectoryStatus.TERMINATED, 1.0, 1.0, [], {}, "", None)
    assert ReplayEntry.objects.exists() is is_on


def test_entries_with_the_same_actions_on_one_task_share_a_signature():
    group = make_group()
    one, two, other = (offer_to_inbox(trajectory=make_trajectory(group=group, turns=3)) for _ in range(3))
    assert one.signature == two.signature == other.signature
    apart = make_trajectory(group=group, turns=3)
    TurnRecord.objects.filter(trajectory=apart, index=1).update(action={"kind": "key", "keys": ["Return"]})
    assert offer_to_inbox(trajectory=apart).signature != one.signature
    elsewhere = offer_to_inbox(trajectory=make_trajectory(turns=3))
    assert elsewhere.signature != one.signature


def test_training_gets_accepted_and_gold_entries_of_the_task_gold_first_seldom_used_first():
    team, task = make_team(), make_task()
    group = make_group(team=team, task=task, size=8)
    entries = {
        name: make_replay_entry(trajectory=make_trajectory(group=group), verdict=verdict, num_uses=uses)
        for name, verdict, uses in [
            ("inbox", "inbox", 0),
            ("rejected", "rejected", 0),
            ("often", "accepted", 3),
            ("seldom", "accepted", 1),
            ("gold", "gold", 9),
        ]
    }
    make_replay_entry(team=team, verdict="gold")  # another task
    make_replay_entry(trajectory=make_trajectory(group=make_group(task=task)), verdict="gold")  # another team
    found = offers(team=team, task=task)
    assert [offer.entry.pk for offer in found] == [entries[name].pk for name in ("gold", "seldom", "often")]


def test_a_skipped_entry_is_counted_by_its_reason():
    entry, experiment = make_replay_entry(verdict="gold"), make_experiment()
    for words in ("turn 1 has no typed action", "turn 2 has no typed action"):
        skip = ReplaySkip(entry_id=entry.pk, reason=SkipReason.NO_ACTION, message=words)
        record_skips(experiment=experiment, skips=[skip, skip.model_copy(update={"entry_id": 0})])
    stored = ReplaySkipRecord.objects.get()
    assert (stored.entry, stored.num_times, stored.message) == (entry, 2, words)
    (incident,) = experiment.incidents.all()
    first = f"entry {entry.pk}: turn 1 has no typed action"
    assert incident.message == f"A replay entry could not be used: {first}."


def test_the_experiments_page_counts_what_sft_left_out_by_reason():
    experiment = make_experiment()
    entries = [make_replay_entry(verdict="gold") for _ in range(3)]
    reasons = (SkipReason.NO_ACTION, SkipReason.NO_ACTION, SkipReason.TOO_LONG)
    record_skips(
        experiment=experiment,
        skips=[
            ReplaySkip(entry_id=entry.pk, reason=reason, message="why")
            for entry, reason in zip(entries, reasons, strict=True)
        ],
    )
    assert sorted(row.message for row in experiment.incidents.all()) == [
        f"2 replay entries could not be used, such as entry {entries[0].pk}: why.",
        f"A replay entry could not be used: entry {entries[2].pk}: why.",
    ]


def test_a_held_out_task_never_gets_an_entry():
    task = make_task(split="heldout")
    group = make_group(task=task)
    make_replay_entry(trajectory=make_trajectory(group=group), verdict="gold")
    assert not offers(team=group.team, task=task)


def test_a_use_is_counted_once_however_often_it_is_reported():
    experiment = make_experiment()
    group = make_group(experiment=experiment)
    failed = make_trajectory(group=group, reward=0.0)
    entry = make_replay_entry(team=experiment.team, verdict="gold")
    use = ReplayUse(
        entry_id=entry.pk,
        group_id=group.pk,
        step=7,
        replaced_trajectory_id=failed.pk,
        policy_age=3,
        as_likelihood=False,
        advantage=1.5,
        importance_ratio=0.9,
    )
    assert record_uses(experiment=experiment, uses=[use]) == 1
    assert record_uses(experiment=experiment, uses=[use]) == 0
    entry.refresh_from_db()
    stored = ReplayUseRecord.objects.get()
    assert entry.num_uses == 1
    assert (stored.experiment, stored.replaced, stored.step) == (experiment, failed, 7)
    assert Experiment.objects.get() == experiment
    # An entry was deleted while the step went on.
    late = [use.model_copy(update=changed) for changed in ({"entry_id": 0, "step": 8}, {"step": 8})]
    assert record_uses(experiment=experiment, uses=late) == 1
    assert ReplayUseRecord.objects.get(step=8).entry == entry


def test_a_relabelled_entry_stops_being_usable():
    entry = make_replay_entry(verdict="accepted")
    task = entry.trajectory.task
    label_entry(entry=entry, user=make_user(), verdict="rejected")
    assert not offers(team=entry.team, task=task)
