"""Reports by the API, and their deletion: pictures and links go, the audit log keeps who did it."""

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from testing.factories import make_experiment, make_team, make_trajectory, make_user
from webapp.accounts.models import AuditAction, AuditEntry, Role, Team
from webapp.accounts.services.tokens import create_token
from webapp.reports.frozen_content import Choices, picture_path
from webapp.reports.models import Report, ReportVersion
from webapp.reports.services.links import make_link, token_of
from webapp.reports.services.reports import write_version

pytestmark = pytest.mark.django_db(transaction=True)
REPORTS = "/api/v1/reports"


@pytest.fixture
def team() -> Team:
    return make_team()


def frozen(team: Team) -> ReportVersion:
    experiment = make_experiment(team=team)
    trajectory = make_trajectory(team=team, turns=2)
    choices = Choices([experiment.pk], trajectories=[trajectory.pk])
    return write_version(team=team, user=make_user(team=team), title="Numbers", text="", choices=choices)


def test_a_deleted_report_leaves_an_audit_entry_and_nothing_else(client: Client, team: Team) -> None:
    version = frozen(team)
    user = make_user(Role.OPERATOR, team=team)
    link = make_link(version=version, user=user, days=7)
    frame = version.content["trajectories"][0]["turns"][0]["frame"]
    path = picture_path(version, frame)
    assert default_storage.exists(path)
    client.force_login(user)
    page = client.post(f"/reports/{version.report_id}/delete/", follow=True).content.decode()
    assert "is deleted" in page
    assert not Report.objects.exists()
    assert not default_storage.exists(path)
    assert client.get(f"/r/{token_of(link)}/").status_code == 404
    entry = AuditEntry.objects.get(action=AuditAction.DELETED)
    assert (entry.person_name, entry.kind, entry.object_id) == (
        user.username, "report", str(version.report_id)
    )  # fmt: skip
    assert entry.detail == {"title": "Numbers", "versions": 1}


def test_a_script_writes_reads_and_deletes(team: Team) -> None:
    experiment = make_experiment(team=team, name="Base")
    token = create_token(user=make_user(Role.OPERATOR, team=team, name="olga"), name="script")
    api = Client(headers={"authorization": f"Bearer {token}"})

    def post(path: str, **body: object):
        return api.post(path, body, content_type="application/json")

    first = post(REPORTS, title="First", text="Words", experiments=[experiment.pk])
    assert first.status_code == 201
    report = first.json()["report"]
    assert (first.json()["number"], first.json()["author"]) == (1, "olga")
    second = post(f"{REPORTS}/{report}/versions", title="Second", experiments=[experiment.pk])
    assert second.json()["number"] == 2
    (row,) = api.get(REPORTS).json()["items"]
    assert (row["id"], row["title"], row["num_versions"]) == (report, "Second", 2)
    shown = api.get(f"{REPORTS}/{report}/versions/1").json()
    assert shown["content"]["tables"][0]["rows"][0][0] == f"#{experiment.pk} Base"
    refused = post(REPORTS, title="x", experiments=[0])
    assert (refused.status_code, set(refused.json()["error"]["fields"])) == (400, {"id"})
    assert api.delete(f"{REPORTS}/{report}").status_code == 204
    assert api.get(f"{REPORTS}/{report}/versions/1").status_code == 404
