"""A stranger with a link, as an attacker: the version's page, pictures and exports, and nothing else."""

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.core.signing import Signer
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_team, make_trajectory, make_user
from webapp.accounts.models import AuditEntry, Role
from webapp.reports.frozen_content import Choices
from webapp.reports.models import ReportLink
from webapp.reports.services import links
from webapp.reports.services.reports import write_version

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh_limits():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def world():
    """A team with a shared version, an unshared newer one, and things that no report shows."""
    team = make_team()
    user = make_user(Role.OPERATOR, team=team)
    experiment = make_experiment(team=team, name="shown-experiment")
    shown, hidden = make_trajectory(team=team, turns=1), make_trajectory(team=team, turns=3)
    choices = Choices([experiment.pk], trajectories=[shown.pk])
    version = write_version(team=team, user=user, title="Shared", text="words", choices=choices)
    newer = write_version(
        team=team, user=user, title="Not shared", text="secret words", report=version.report,
        choices=Choices([experiment.pk], trajectories=[hidden.pk]),
    )  # fmt: skip
    link = links.make_link(version=version, user=user, days=7)
    return team, user, shown, hidden, version, newer, link


def address(link: ReportLink) -> str:
    return f"/r/{links.token_of(link)}/"


def test_a_stranger_reads_the_shared_version_its_pictures_and_exports(world):
    *_, version, _, link = world
    client = Client()
    page = client.get(address(link))
    assert page.status_code == 200
    text = page.content.decode()
    assert "shown-experiment" in text
    assert "secret words" not in text
    assert (page["Referrer-Policy"], page["Cache-Control"]) == ("no-referrer", "private, no-store")
    assert "noindex" in page["X-Robots-Tag"]
    frame = version.content["trajectories"][0]["turns"][0]["frame"]
    assert client.get(f"{address(link)}{frame}.jpg").status_code == 200
    assert client.get(f"{address(link)}table-1.csv").status_code == 200
    link.refresh_from_db()
    assert link.num_opened == 1


def test_the_page_leads_nowhere_else_and_opens_no_session(world):
    *_, link = world
    client = Client()
    page = client.get(address(link))
    text = page.content.decode()
    for inner in ("/experiments/", "/trajectories/", "/reports/", "/team/", "/frames/", "/logout/"):
        assert f'href="{inner}' not in text, inner
        assert f'src="{inner}' not in text, inner
    assert "sessionid" not in page.cookies
    assert "deskhand_session" not in page.cookies
    for path in ("/experiments/", "/reports/", "/trajectories/", "/replay/", "/api/v1/me"):
        assert client.get(path).status_code in (302, 401), path


def test_a_link_shows_no_picture_of_another_version_and_no_file_beside_them(world):
    *_, shown, hidden, version, newer, link = world
    client = Client()
    known = {turn["frame"] for turn in version.content["trajectories"][0]["turns"]}
    others = {turn["frame"] for turn in newer.content["trajectories"][0]["turns"]} - known
    assert others
    for frame in others:
        assert client.get(f"{address(link)}{frame}.jpg").status_code == 404
        assert client.get(f"/frames/{frame}.jpg").status_code in (302, 404)
    for path in (
        "../../v/2/",
        f"v/{newer.number}/",
        "%2e%2e/secrets.jpg",
        "table-1.html",
        "table-99.csv",
        "a/b.jpg",
    ):
        assert client.get(f"{address(link)}{path}").status_code in (302, 404), path


def test_forged_expired_and_revoked_links_get_one_and_the_same_answer(world):
    *_, user, _, _, version, newer, link = world
    good = links.token_of(link)
    other = Signer(key="another key", salt="reports.link", sep="~").sign(f"{link.pk}.{link.nonce}")
    unsalted = Signer(sep="~").sign(f"{link.pk}.{link.nonce}")
    wrong_nonce = links.SIGNER.sign(f"{link.pk}.elsewhere")
    expired, revoked = (links.make_link(version=version, user=user, days=1) for _ in range(2))
    ReportLink.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    links.revoke_link(link=revoked, user=user)
    tokens = [
        good[:-1] + ("A" if good[-1] != "A" else "B"), good.replace(str(link.pk), str(link.pk + 1), 1), other,
        unsalted, wrong_nonce, "1", "~", "x~y", links.token_of(expired), links.token_of(revoked),
    ]  # fmt: skip
    client = Client()
    answers = [client.get(f"/r/{token}/") for token in tokens]
    assert {answer.status_code for answer in answers} == {404}
    csrf = re.compile(rb'name="csrf-token" content="\w+"')
    assert len({csrf.sub(b"", answer.content) for answer in answers}) == 1
    frame = version.content["trajectories"][0]["turns"][0]["frame"]
    for dead in (expired, revoked):
        assert client.get(f"{address(dead)}{frame}.jpg").status_code == 404
        assert client.get(f"{address(dead)}table-1.csv").status_code == 404
    assert client.get(address(link)).status_code == 200


def test_guessing_is_slowed_down_and_the_real_link_goes_on(world):
    *_, link = world
    client = Client()
    codes = [client.get(f"/r/{number}~x/").status_code for number in range(links.MAX_WRONG + 2)]
    assert codes == [404] * links.MAX_WRONG + [429] * 2
    assert client.get(address(link)).status_code == 200


def test_one_link_answers_only_so_often_from_one_address(world, monkeypatch):
    *_, link = world
    monkeypatch.setattr(links, "MAX_OF_LINK", 3)
    client = Client()
    assert [client.get(address(link)).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert client.get(address(link), REMOTE_ADDR="10.0.0.9").status_code == 200


def test_only_operators_make_and_revoke_links_and_a_link_cannot_write(world):
    team, _, _, _, version, _, link = world
    url = f"/reports/{version.report_id}/"
    viewer, stranger = Client(), Client()
    viewer.force_login(make_user(Role.VIEWER, team=team))
    stranger.force_login(make_user(Role.ADMIN))
    for client, code in ((viewer, 403), (stranger, 404)):
        assert client.post(f"{url}v/1/links/", {"days": "7"}).status_code == code
        assert client.post(f"{url}links/{link.pk}/revoke/").status_code == code
    assert links.token_of(link) not in viewer.get(url).content.decode()
    assert Client().post(address(link)).status_code == 405
    assert ReportLink.objects.count() == 1
    operator = Client()
    operator.force_login(make_user(Role.OPERATOR, team=team))
    assert operator.post(f"{url}v/1/links/", {"days": "365"}).status_code == 400
    assert links.token_of(link) in operator.get(url).content.decode()
    operator.post(f"{url}links/{link.pk}/revoke/")
    assert Client().get(address(link)).status_code == 404
    logged = AuditEntry.objects.filter(kind="report", object_id=str(version.report_id))
    assert list(logged.order_by("pk").values_list("action", flat=True)) == ["shared", "unshared"]
