"""What scripts do to many experiments, the queue, logs, alarms, and in which team."""

import pytest

from testing.factories import make_experiment, make_team, make_user
from tests.webapp.api.test_rest_api import Caller
from webapp.accounts.models import Membership
from webapp.accounts.services.tokens import create_token
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import AlarmRecord, Experiment

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team("red")


@pytest.fixture
def user(team):
    return make_user("operator", team=team, name="olga")


@pytest.fixture
def api(user):
    return Caller(create_token(user=user, name="script"))


def status_of(row: Experiment) -> str:
    return Experiment.objects.get(pk=row.pk).status


def test_a_bulk_cancel_is_taken_back_for_those_that_waited(api, team):
    waiting, running, ended = (
        make_experiment(team=team, status=s) for s in ("queued", "running", "finished")
    )
    foreign = make_experiment(team=make_team(), status="queued")
    ids = [row.pk for row in (waiting, running, ended, foreign)]
    answer = api.post("/experiments/many/cancel", {"ids": ids}).json()
    assert answer["done"] == [waiting.pk, running.pk]
    assert set(answer["left"]) == {str(ended.pk), str(foreign.pk)}
    assert (status_of(waiting), status_of(running), status_of(foreign)) == (
        "cancelled",
        "cancelling",
        "queued",
    )
    undone = api.post("/experiments/many/cancel/undo", {"undo": answer["undo"]}).json()
    assert undone["done"] == [waiting.pk]
    assert (status_of(waiting), status_of(running)) == ("queued", "cancelling")


def test_a_forged_undo_changes_nothing(api, team):
    row = make_experiment(team=team, status="cancelled")
    response = api.post("/experiments/many/cancel/undo", {"undo": f'{{"{row.pk}": "queued"}}'})
    assert (response.status_code, response.json()["error"]["fields"].keys()) == (400, {"undo"})
    assert status_of(row) == "cancelled"


def test_the_queue_is_listed_in_its_order_and_changed(api, team):
    first, second, third = (make_experiment(team=team, status="queued") for _ in range(3))
    api.post(f"/experiments/{third.pk}/move", {"before": first.pk})
    assert [row["id"] for row in api.get("/queue").json()] == [third.pk, first.pk, second.pk]
    api.post(f"/experiments/{second.pk}/priority", {"priority": 9})
    assert [row["id"] for row in api.get("/queue").json()] == [second.pk, third.pk, first.pk]


def test_archiving_and_deleting_many_tell_of_each(api, team):
    ended, running = (
        make_experiment(team=team, status="finished"),
        make_experiment(team=team, status="running"),
    )
    ids = {"ids": [ended.pk, running.pk]}
    answer = api.post("/experiments/many/archive", ids).json()
    assert (answer["done"], list(answer["left"])) == ([ended.pk], [str(running.pk)])
    answer = api.post("/experiments/many/delete", ids).json()
    assert (answer["done"], list(answer["left"])) == ([ended.pk], [str(running.pk)])
    assert not Experiment.objects.filter(pk=ended.pk).exists()


def test_logs_are_read_from_the_end_from_a_place_and_from_the_first_error(api, team, settings, tmp_path):
    settings.EXPERIMENTS_DIR = tmp_path
    pk = make_experiment(team=team, status="running").pk
    folder = log_folder(pk)
    folder.mkdir(parents=True)
    (folder / "trainer-1.log").write_text("one\nERROR two\nthree\n")
    assert [file["name"] for file in api.get(f"/experiments/{pk}/logs").json()] == ["trainer-1.log"]
    whole = api.get(f"/experiments/{pk}/logs/trainer-1.log").json()
    assert [(line["level"], line["text"]) for line in whole["lines"]] == [
        ("info", "one"),
        ("error", "ERROR two"),
        ("info", "three"),
    ]
    rest = api.get(f"/experiments/{pk}/logs/trainer-1.log", after=4).json()
    assert [line["text"] for line in rest["lines"]] == ["ERROR two", "three"]
    found = api.get(f"/experiments/{pk}/logs/trainer-1.log", at="first-error").json()
    assert found["found"]
    nothing = api.get(f"/experiments/{pk}/logs/trainer-1.log", after=14, at="first-error").json()
    assert (nothing["found"], nothing["is_searched"]) == (False, True)
    assert api.get(f"/experiments/{pk}/logs/..%2Fsecret.log").status_code == 404


def test_an_alarm_is_acknowledged_by_name(api, team):
    alarm = AlarmRecord.objects.create(
        experiment=make_experiment(team=team),
        name="grad_norm",
        severity="critical",
        step=3,
        value=48.2,
        limit=10.0,
    )
    answer = api.post(f"/experiments/{alarm.experiment_id}/alarms/{alarm.name}/acknowledge").json()
    assert (answer["status"], answer["acknowledged_by"]) == ("acknowledged", "olga")


def test_a_token_acts_in_the_team_that_the_header_names(api, user):
    blue = make_team("blue")
    Membership.objects.create(team=blue, user=user, role="viewer")
    make_experiment(team=blue, name="of blue")
    api.client.defaults["HTTP_DESKHAND_TEAM"] = "blue"
    assert [row["name"] for row in api.get("/experiments").json()["items"]] == ["of blue"]
    refused = api.post("/experiments", {"name": "x", "preset": "first-desk"})
    assert refused.status_code == 403  # a viewer there
    api.client.defaults["HTTP_DESKHAND_TEAM"] = "green"
    assert api.get("/experiments").status_code == 403
