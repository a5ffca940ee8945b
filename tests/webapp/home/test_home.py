"""The first page: what needs a person, what does not any more, and nothing of another team."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_replay_entry, make_team, make_user
from testing.page_text import page_text
from training.contracts.trainer_reports import Alarm, StepAlarms
from webapp.accounts.models import Role, Team
from webapp.accounts.services.audit_log import log_viewing
from webapp.experiments.models import Experiment
from webapp.experiments.services.alarms import record_alarms
from webapp.replay.services.labels import label_entry

pytestmark = pytest.mark.django_db


def run_of(
    team: Team, name: str, *, ended_days_ago: float | None, won: tuple[int, int] = (0, 0)
) -> Experiment:
    ended = None if ended_days_ago is None else timezone.now() - timedelta(days=ended_days_ago)
    status = "running" if ended is None else "finished"
    started = (ended or timezone.now()) - timedelta(hours=1)
    found = make_experiment(team=team, name=name, status=status, started_at=started, ended_at=ended)
    for point, step, number in (("before", 0, won[0]), ("after", 6, won[1])):
        if any(won):
            make_evaluation(found, name=point, step=step, temperature=0.0, won=number, total=40)
    fired = Alarm(
        name="parse_collapse", step=1, value=1, limit=0.3, message=f"Fired in {name}", remedy="Look"
    )
    record_alarms(experiment_id=found.pk, report=StepAlarms(step=1, alarms=(fired,)))
    return found


def test_it_names_what_needs_a_person_and_leaves_history_out():
    team = make_team()
    client = Client()
    client.force_login(make_user(Role.OPERATOR, team=team))
    assert "Nothing waits for you" in page_text(client.get("/"))
    run_of(team, "goes on", ended_days_ago=None)
    run_of(team, "fell", ended_days_ago=1, won=(20, 0))
    run_of(team, "rose", ended_days_ago=1, won=(5, 30))
    run_of(team, "fell long ago", ended_days_ago=30, won=(20, 0))
    run_of(make_team(), "of others", ended_days_ago=None)
    make_replay_entry(team=team)
    text = page_text(client.get("/home/needs/"))
    assert "goes on: Parse collapse" in text
    assert "fell: Collapsed" in text
    assert "Fired in fell" not in text, "alarms of an ended run are history"
    assert "rose: " not in text
    assert "fell long ago" not in text
    assert "of others" not in text
    assert "The replay inbox waits: 1 trajectory" in text


def test_the_first_run_is_guided_step_by_step_and_the_sample_stays_reachable():
    team = make_team()
    client, person = Client(), make_user(Role.OPERATOR, team=team)
    client.force_login(person)

    def standing() -> tuple[list[bool], str]:
        guide = client.get("/").context["guide"]
        return [step.is_done for step in guide.steps], guide.next_step.url if guide.next_step else "over"

    assert standing() == ([False] * 4, "/experiments/launch/?preset=first-desk")
    run = make_experiment(team=team, status="running")
    make_experiment(team=team, status="finished", ended_at=timezone.now(), is_sample=True)
    assert standing() == ([True, False, False, False], f"/experiments/{run.pk}/?tab=desktops")
    log_viewing(person=person, team=team, kind="trajectory", object_id=1, how="screen")
    assert standing() == ([True, True, False, False], f"/experiments/{run.pk}/")
    Experiment.objects.filter(pk=run.pk).update(status="finished", ended_at=timezone.now())
    label_entry(entry=make_replay_entry(team=team), user=person, verdict="accepted")
    assert standing() == ([True] * 4, "over")
    assert "Open the sample" in page_text(client.get("/"))


def test_what_is_found_is_the_teams_and_what_may_be_done_follows_the_role():
    team = make_team()
    mine = make_experiment(team=team, name="slow one", status="running")
    make_experiment(team=make_team(), name="slow stranger", status="running")
    entry = make_replay_entry(team=team)

    def found(role: Role, text: str) -> list[str]:
        client = Client()
        client.force_login(make_user(role, team=team))
        return [one["title"] for one in client.get("/find/", {"q": text}).json()["found"]]

    assert found(Role.VIEWER, "SLOW") == [f"#{mine.pk} slow one"]
    assert found(Role.OPERATOR, f"cancel #{mine.pk}")[0] == f"Cancel #{mine.pk} slow one"
    assert found(Role.OPERATOR, f"resume {mine.pk}") == [f"#{mine.pk} slow one"], "it cannot be resumed"
    assert f"Pause #{mine.pk} slow one" in found(Role.OPERATOR, str(mine.pk))
    assert found(Role.ANNOTATOR, f"label {entry.pk}") == [f"Replay entry {entry.pk}"]
    assert found(Role.VIEWER, " ") == []
