"""Rules let old trajectories go, piece by piece; what people or other rows need never goes."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_replay_entry, make_team, make_trajectory, make_user
from testing.page_text import page_text
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.accounts.models import Role, Team
from webapp.experiments.models import ExperimentStatus
from webapp.replay.models import ReplayEntry, Verdict
from webapp.retention.models import RetentionRule
from webapp.retention.queries import prunable
from webapp.retention.queries.usage import summaries
from webapp.retention.services import pruning
from webapp.trajectories.frame_files.names import frame_path
from webapp.trajectories.models import Frame, Trajectory, TurnRecord
from webapp.trajectories.services.frames import store_frame

pytestmark = pytest.mark.django_db
OLD = timedelta(days=40)


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def rule(team: Team) -> RetentionRule:
    return RetentionRule.objects.create(team=team, max_age_days=30)


def old_one(team: Team, **values: object) -> Trajectory:
    """Ended long ago, in a finished experiment; its files are as old."""
    if "group" not in values and "experiment" not in values:
        values["experiment"] = make_experiment(team=team, status=ExperimentStatus.FINISHED)
    made = make_trajectory(turns=2, **values)
    age(made)
    return made


def age(trajectory: Trajectory) -> None:
    Trajectory.objects.filter(pk=trajectory.pk).update(ended_at=timezone.now() - OLD)
    for sha in frames_of(trajectory):
        for path in file_of(sha).parent.glob(f"{sha}*"):
            os.utime(path, (time.time() - OLD.total_seconds(),) * 2)


def frames_of(trajectory: Trajectory) -> list[str]:
    return list(TurnRecord.objects.filter(trajectory=trajectory).values_list("frame", flat=True))


def file_of(sha: str) -> Path:
    return Path(settings.MEDIA_ROOT, frame_path(sha))


def run() -> list[int]:
    return [pk for batch in pruning.prune() for pk in batch.trajectories]


def test_an_old_trajectory_loses_turns_and_screens_and_keeps_its_figures(
    team: Team, rule: RetentionRule
) -> None:
    young = make_trajectory(team=team, turns=1)
    old = old_one(team, reward=0.5)
    (only,) = set(frames_of(old)) - set(frames_of(young))
    assert run() == [old.pk]
    old.refresh_from_db()
    assert old.pruned_at
    assert (old.reward, old.num_turns, old.last_frame, old.turns.count()) == (0.5, 2, "", 0)
    assert not list(file_of(only).parent.glob(f"*{only}*"))
    assert not Frame.objects.filter(sha256=only).exists()
    assert all(file_of(sha).exists() for sha in frames_of(young)), "a shared screenshot stays"
    assert run() == []


@pytest.mark.parametrize(
    "values",
    [
        {"status": TrajectoryStatus.RUNNING},
        {"purpose": Purpose.DEMONSTRATION},
        {"source": Source.HUMAN},
        {"source": Source.ORACLE},
    ],
)
def test_what_people_need_never_goes(team: Team, rule: RetentionRule, values: dict[str, object]) -> None:
    kept = old_one(team, **values)
    if values.get("status"):
        Trajectory.objects.filter(pk=kept.pk).update(ended_at=None)
    assert run() == []
    assert frames_of(kept)


def test_a_running_experiment_keeps_everything(team: Team, rule: RetentionRule) -> None:
    old_one(team, experiment=make_experiment(team=team, status=ExperimentStatus.PAUSED))
    assert run() == []


@pytest.mark.parametrize(("verdict", "goes"), [(v, v == Verdict.REJECTED) for v in Verdict])
def test_replay_entries_stay_unless_rejected(
    team: Team, rule: RetentionRule, verdict: Verdict, goes: bool
) -> None:
    entry = make_replay_entry(team=team, turns=2, verdict=verdict)
    age(entry.trajectory)
    assert bool(run()) is goes


def test_one_that_is_accepted_meanwhile_stays(team: Team, rule: RetentionRule) -> None:
    old = old_one(team)
    (batch,) = prunable.batches(rule)
    ReplayEntry.objects.create(team=team, trajectory=old, verdict=Verdict.GOLD)
    pruning.delete(batch)
    assert frames_of(old)
    assert all(file_of(sha).exists() for sha in frames_of(old))


def test_other_teams_and_experiments_with_a_rule_of_their_own_are_left_alone(
    team: Team, rule: RetentionRule
) -> None:
    own = make_experiment(team=team, status=ExperimentStatus.FINISHED)
    RetentionRule.objects.create(team=team, experiment=own, max_age_days=100)
    old_one(team, experiment=own)
    old_one(make_team())
    assert run() == []


def test_above_its_bytes_the_oldest_go(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prunable, "BATCH", 1)
    young, oldest = (
        old_one(team),
        make_trajectory(experiment=make_experiment(team=team, status=ExperimentStatus.FINISHED), turns=4),
    )
    Trajectory.objects.filter(pk=oldest.pk).update(ended_at=timezone.now() - OLD * 2)
    Frame.objects.filter(team=team).update(num_bytes=100)
    rule = RetentionRule.objects.create(team=team, max_bytes=300)
    assert prunable.used_bytes(rule) == 400, "two screenshots are shown by both"
    found = list(prunable.batches(rule))
    assert [(batch.trajectories, batch.num_bytes) for batch in found] == [((oldest.pk,), 200)]
    assert frames_of(young)


def test_a_screenshot_stored_again_in_that_moment_stays(team: Team, rule: RetentionRule) -> None:
    old = old_one(team)
    sha = frames_of(old)[0]
    png = file_of(sha).read_bytes()
    (batch,) = prunable.batches(rule)
    store_frame(team, png)
    pruning.delete(batch)
    assert file_of(sha).exists()
    assert Frame.objects.filter(team=team, sha256=sha).exists()


def test_a_dry_run_says_what_would_go_and_deletes_nothing(
    team: Team, rule: RetentionRule, capsys: pytest.CaptureFixture[str]
) -> None:
    old = old_one(team)
    call_command("prune", "--dry-run")
    output = capsys.readouterr().out
    assert f"{team}: 1 trajectories" in output
    assert "would go" in output
    assert frames_of(old)
    call_command("prune")
    assert "1 trajectories" in capsys.readouterr().out
    assert not frames_of(old)


def test_a_count_without_time_says_so(team: Team, rule: RetentionRule) -> None:
    for _ in range(prunable.BATCH + 1):
        old_one(team)
    (whole,) = summaries([rule], pruning.plan([rule]))
    assert (whole.num_trajectories, whole.is_least) == (prunable.BATCH + 1, False)
    (partial,) = summaries([rule], pruning.plan([rule]), max_s=0)
    assert (partial.num_trajectories, partial.is_least) == (prunable.BATCH, True)


@pytest.fixture
def admin(client: Client, team: Team) -> User:
    user = make_user(Role.ADMIN, team=team)
    client.force_login(user)
    return user


def test_an_admin_makes_changes_and_deletes_a_rule(client: Client, admin: User, team: Team) -> None:
    old_one(team)
    client.post("/storage/rules/", {"max_age_days": "30"})
    client.post("/storage/rules/", {"max_age_days": "7", "max_gb": "1.5"})
    rule = RetentionRule.objects.get(team=team)
    assert (rule.max_age_days, rule.max_bytes) == (7, 1_500_000_000)
    page = client.get("/storage/").content.decode()
    assert "1 trajectory" in page
    assert "1.5 GB" in page
    client.post(f"/storage/rules/{rule.pk}/delete/")
    assert not RetentionRule.objects.exists()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "max_age_days or max_gb: give at least one"),
        ({"max_age_days": "-1"}, "max_age_days: "),
        ({"max_gb": "nan"}, "max_gb: "),
        ({"max_gb": "1e9"}, "max_gb: Ensure this value is less than or equal to 1000000"),
        ({"max_age_days": "9" * 30}, "max_age_days: at most 36500"),
        ({"experiment": "0"}, "experiment: "),
    ],
)
def test_a_rule_that_says_nothing_is_refused_by_its_field(
    client: Client, admin: User, values: dict[str, str], said: str
) -> None:
    page = client.post("/storage/rules/", values, follow=True)
    assert page.status_code == 200
    assert said in page_text(page)
    assert not RetentionRule.objects.exists()
