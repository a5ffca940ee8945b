"""The life of groups and trajectories in the database: claims, retries, finishing once."""

from datetime import timedelta

import pytest
import redis
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from testing.factories import make_experiment, make_task, make_team, make_trajectory
from training.contracts.trainer_reports import MemberUpdate
from training.contracts.types import Action, ActionKind, Observation, Purpose, Source, TrajectoryStatus, Turn
from webapp.dispatcher.services import waiting_trajectories
from webapp.fleet.models import Worker
from webapp.fleet.services.workers import beat_worker
from webapp.live.models import Event
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.row_to_types import group_of
from webapp.trajectories.services import advantages, announcements, groups, trajectories, turns
from webapp.worker_door.trajectories import finish

pytestmark = pytest.mark.django_db


def make_sampled_group(size: int = 2, **values: object) -> Group:
    experiment = make_experiment(team=make_team())
    return groups.create_group(
        request=groups.GroupSpec(task=make_task(), size=size, purpose=Purpose.TRAIN, **values),
        team_id=experiment.team_id,
        experiment=experiment,
        attempt=1,
    )


def env_worker(slots: int = 2) -> Worker:
    return beat_worker(name="env@here", queue="env", host="here", pid=7, slots=slots, version="1")


def run_to_the_end(trajectory: Trajectory, reward: float) -> None:
    claimed = trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=env_worker())
    trajectories.move_trajectory(trajectory=claimed, to=TrajectoryStatus.RUNNING)
    trajectories.move_trajectory(trajectory=claimed, to=TrajectoryStatus.EVALUATING)
    assert trajectories.end_trajectory(
        trajectory_id=trajectory.pk, status=TrajectoryStatus.TERMINATED, score=reward, reward=reward
    )


def test_a_trajectory_is_claimed_once() -> None:
    trajectory = make_sampled_group(size=2).trajectories.first()
    worker = env_worker()
    assert trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=worker)
    assert trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=worker) is None


def test_a_group_finishes_once_with_its_statistics_and_a_cursor() -> None:
    group = make_sampled_group(size=2)
    first, second = group.trajectories.order_by("member")
    run_to_the_end(first, 1.0)
    group.refresh_from_db()
    assert group.finished_at is None
    run_to_the_end(second, 0.0)
    group.refresh_from_db()
    assert group.finished_seq > 0
    assert (group.num_final, group.num_scored, group.reward_mean) == (2, 2, 0.5)


def test_an_errored_trajectory_is_run_again_and_never_scored() -> None:
    group = make_sampled_group(size=2)
    first, second = group.trajectories.order_by("member")
    trajectories.claim_trajectory(trajectory_id=first.pk, worker=env_worker())
    trajectories.end_trajectory(trajectory_id=first.pk, status=TrajectoryStatus.ERRORED, error="the VM died")
    again = group.trajectories.get(retry_of=first)
    assert (again.member, again.tries, again.status) == (first.member, 1, TrajectoryStatus.QUEUED)
    run_to_the_end(again, 1.0)
    run_to_the_end(second, 0.0)
    group.refresh_from_db()
    assert group.num_scored == 2
    assert [t.trajectory_id for t in group_of(group).scored()] == [again.pk, second.pk]
    first.refresh_from_db()
    assert first.reward is None
    assert first.score is None


@pytest.mark.parametrize(
    "error",
    ["\u684c\u9762\u6ca1\u6709\u54cd\u5e94" * 100, "lone \ud83d half of a pair", "x" * 3_000_000],
    ids=["CJK", "surrogate", "3 MB"],
)
def test_an_error_in_any_words_of_any_length_is_recorded(error: str) -> None:
    trajectory = make_sampled_group(size=1).trajectories.get()
    trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=env_worker())
    assert trajectories.end_trajectory(
        trajectory_id=trajectory.pk, status=TrajectoryStatus.ERRORED, error=error, error_kind="evaluator"
    )
    trajectory.refresh_from_db()
    assert trajectory.status == TrajectoryStatus.ERRORED
    assert trajectory.error == error.replace("\ud83d", "\ufffd")
    event = Event.objects.filter(
        stream=announcements.stream_of(trajectory.pk), type="trajectory.updated"
    ).last()
    assert event.payload["status"] == TrajectoryStatus.ERRORED
    assert trajectory.error.startswith(event.payload["error"].rstrip("\u2026"))


def test_a_place_whose_retries_are_used_up_stays_empty_and_the_group_still_finishes() -> None:
    group = make_sampled_group(size=1)
    for _ in range(3):
        trajectory = group.trajectories.get(status=TrajectoryStatus.QUEUED)
        trajectories.end_trajectory(
            trajectory_id=trajectory.pk, status=TrajectoryStatus.ERRORED, error="no disk"
        )
    group.refresh_from_db()
    assert group.finished_at is not None
    assert group.num_scored == 0
    assert group_of(group).scored() == ()


def test_a_dead_worker_turns_its_trajectories_into_errored_ones() -> None:
    group = make_sampled_group(size=1)
    trajectory = group.trajectories.get()
    trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=env_worker())
    Trajectory.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert trajectories.lose_stale_trajectories() == [trajectory.pk]
    trajectory.refresh_from_db()
    assert trajectory.status == TrajectoryStatus.ERRORED
    assert "env@here stopped answering" in trajectory.error
    assert group.trajectories.filter(status=TrajectoryStatus.QUEUED).count() == 1


def test_a_late_report_of_a_lost_worker_changes_nothing() -> None:
    trajectory = make_sampled_group(size=1).trajectories.get()
    trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=env_worker())
    trajectories.end_trajectory(trajectory_id=trajectory.pk, status=TrajectoryStatus.ERRORED, error="lost")
    assert not trajectories.end_trajectory(
        trajectory_id=trajectory.pk, status=TrajectoryStatus.TERMINATED, score=1.0, reward=1.0
    )
    trajectory.refresh_from_db()
    assert trajectory.status == TrajectoryStatus.ERRORED


def test_a_queued_trajectory_cannot_be_scored() -> None:
    trajectory = make_sampled_group(size=1).trajectories.get()
    assert not trajectories.end_trajectory(
        trajectory_id=trajectory.pk, status=TrajectoryStatus.TERMINATED, score=1.0, reward=1.0
    )


def test_cancelling_an_attempts_groups_ends_waiting_members_and_is_not_retried() -> None:
    group = make_sampled_group(size=2)
    assert groups.cancel_groups_of(experiment_id=group.experiment_id) == 1
    assert set(group.trajectories.values_list("status", flat=True)) == {TrajectoryStatus.CANCELLED}
    assert group.trajectories.count() == 2


def test_turns_are_visible_when_opened_and_complete_when_closed() -> None:
    trajectory = make_sampled_group(size=1).trajectories.get()
    observation = Observation(sha256="a" * 64, width=512, height=384, text="Choose row 4.")
    turns.open_turn(
        trajectory_id=trajectory.pk,
        index=0,
        source=Source.POLICY,
        observation=observation,
        observed_at=timezone.now(),
    )
    trajectory.refresh_from_db()
    assert (trajectory.num_turns, trajectory.last_frame) == (1, "a" * 64)
    turn = Turn(index=0, observation=observation, parse_error="no action in a known form")
    turns.close_turn(trajectory_id=trajectory.pk, turn=turn, thought="hm", completed_at=timezone.now())
    trajectory.refresh_from_db()
    assert trajectory.num_parse_errors == 1
    assert trajectory.turns.get().parse_error == "no action in a known form"


def test_the_dispatcher_sends_what_the_slots_can_take_through_real_redis(
    redis_client: redis.Redis, django_capture_on_commit_callbacks: object
) -> None:
    redis_client.delete("env")
    env_worker(slots=2)
    make_sampled_group(size=6)
    assert waiting_trajectories.fill_free_slots() == 3
    assert redis_client.llen("env") == 3
    assert waiting_trajectories.fill_free_slots() == 0
    assert Trajectory.objects.filter(sent_at__isnull=True).count() == 3


def test_a_job_that_nobody_claimed_is_sent_again(redis_client: redis.Redis) -> None:
    redis_client.delete("env")
    env_worker(slots=1)
    make_sampled_group(size=1)
    waiting_trajectories.fill_free_slots()
    Trajectory.objects.update(sent_at=timezone.now() - timedelta(minutes=5))
    assert waiting_trajectories.resend_forgotten() == 1
    assert waiting_trajectories.fill_free_slots() == 1
    assert redis_client.llen("env") == 2


def test_advantages_reach_their_trajectories_only_within_the_experiment() -> None:
    group = make_sampled_group(size=1)
    trajectory = group.trajectories.get()
    update = MemberUpdate(trajectory_id=trajectory.pk, advantage=1.5, policy_logprob_gap=0.01)
    advantages.record_member_updates(experiment_id=make_experiment().pk, updates=[update])
    trajectory.refresh_from_db()
    assert trajectory.advantage is None
    advantages.record_member_updates(experiment_id=group.experiment_id, updates=[update])
    trajectory.refresh_from_db()
    assert trajectory.advantage == 1.5


def test_a_nul_that_the_policy_wrote_is_stored_as_its_symbol() -> None:
    trajectory = make_sampled_group(size=2).trajectories.first()
    claimed = trajectories.claim_trajectory(trajectory_id=trajectory.pk, worker=env_worker())
    seen = Observation(sha256="a" * 64, width=512, height=384, text="type a\x00b")
    now = timezone.now()
    turns.open_turn(
        trajectory_id=claimed.pk, index=0, source=Source.POLICY, observation=seen, observed_at=now
    )
    action = Action(kind=ActionKind.TYPE, text="a\x00b")
    turn = Turn(index=0, source=Source.POLICY, observation=seen, action=action, parse_error="at \x00")
    turns.close_turn(trajectory_id=claimed.pk, turn=turn, thought="\x00", completed_at=now)
    row = claimed.turns.get()
    assert (row.observation_text, row.action["text"]) == ("type a\u2400b", "a\u2400b")
    assert (row.parse_error, row.thought) == ("at \u2400", "\u2400")


def test_terms_of_turns_are_stored_in_one_statement(django_assert_num_queries) -> None:
    trajectory = make_trajectory(turns=5)
    terms = {index: [{"name": "parsable.v1", "value": index}] for index in (0, 2, 4)}
    with django_assert_num_queries(1):
        turns.record_turn_terms(trajectory=trajectory, terms=terms)
    found = dict(trajectory.turns.values_list("index", "terms"))
    assert {index: found[index] for index in terms} == terms
    assert found[1] == found[3] != terms[0]


def test_a_turn_is_part_of_its_callers_transaction() -> None:
    trajectory = make_trajectory(turns=0, status="running", reward=None)
    observation = Observation(sha256="a" * 64, width=512, height=384, text="Go on")
    values = {"source": Source.POLICY, "observation": observation, "observed_at": timezone.now()}
    with CaptureQueriesContext(connection) as queries, transaction.atomic():
        turns.open_turn(trajectory_id=trajectory.pk, index=0, **values)
    assert sum(one["sql"].startswith("SAVEPOINT") for one in queries) == 1, "the caller's, within the test's"
    assert trajectory.turns.count() == 1


@pytest.mark.parametrize("step", ["inbox.offer_to_inbox", "note_scripted_run"])
def test_a_trajectory_ends_with_its_entry_and_its_exploit_or_not_at_all(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may die in between, and who sees a finished group looks for both."""
    trajectory = make_trajectory(turns=1, status="evaluating", reward=None)

    def dies(*_: object, **__: object) -> None:
        raise SystemExit

    monkeypatch.setattr(f"webapp.worker_door.trajectories.{step}", dies)
    with pytest.raises(SystemExit):
        finish(trajectory.pk, TrajectoryStatus.TERMINATED, 1.0, 1.0, [], {}, "", None)
    trajectory.refresh_from_db()
    assert (trajectory.status, trajectory.score) == ("evaluating", None)
