"""Who may join, by which name and role, and what a host believes of the server that it joins."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from testing.factories import make_team, make_user
from testing.fleet_rows import make_host, make_joined_host, make_worker
from testing.servers.answering import Answer, answering
from webapp.fleet.models import JoinedHost, JoinToken
from webapp.fleet.services.workers import NameTaken, beat_worker
from webapp.lib.host_links.certificates import Authority, fingerprint_of, make_self_signed
from webapp.worker_door.joined_hosts import joining
from webapp.worker_door.joined_hosts.contract_version import version
from webapp.worker_door.management.commands.join import fetch_authority, read_token


def join(name: str, *, invited_as: tuple[str, ...] = ("env",), roles: tuple[str, ...] = ("env",)) -> None:
    token = joining.make_token(user=make_user("admin"), roles=invited_as, team=None)
    joining.join(token=token, name=name, roles=roles, sent_version=version())


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["server", "Server", "mirrored"])
def test_no_host_joins_under_the_name_of_a_machine_of_the_installations_own(name):
    make_worker("env@server", host="server")
    make_host("mirrored")
    with pytest.raises(joining.JoinRefused, match="machine of this installation's own"):
        join(name)
    assert not JoinedHost.objects.exists()
    assert JoinToken.objects.get().used_at is None, "the token is still good"


@pytest.mark.django_db
def test_no_worker_of_the_installations_own_comes_from_a_machine_called_as_a_joined_host():
    make_joined_host("far")
    with pytest.raises(NameTaken, match="a joined host is called far, too"):
        make_worker("env@far", host="far")


@pytest.mark.django_db
def test_a_worker_of_one_host_never_becomes_that_of_another():
    make_worker("env1@far", host="server")
    with pytest.raises(NameTaken, match=r"worker env1@far is of another host"):
        beat_worker(name="env1@far", queue="env", host="far", pid=2, slots=1, version="1", is_joined=True)


@pytest.mark.django_db
@pytest.mark.parametrize("roles", [("gpu",), ("env", "gpu"), (), ("root",)])
def test_a_host_joins_only_for_what_its_token_invites(roles):
    with pytest.raises(joining.JoinRefused, match="roles: this token is for env"):
        join("far", invited_as=("env",), roles=roles)
    assert not JoinedHost.objects.exists()


@pytest.mark.django_db
def test_roles_are_kept_with_the_host():
    join("far", invited_as=("env", "gpu"), roles=("gpu",))
    assert JoinedHost.objects.get().roles == ["gpu"]


@pytest.mark.django_db
def test_the_team_of_a_token_is_kept_with_the_host():
    team = make_team()
    token = joining.make_token(user=make_user("admin"), roles=["env"], team=team)
    joining.join(token=token, name="far", roles=["env"], sent_version=version())
    assert JoinedHost.objects.get().team == team


@pytest.mark.django_db
@pytest.mark.parametrize(("sent", "is_for_all"), [({}, False), ({"teams": "all"}, True)])
def test_only_an_administrators_word_invites_a_host_for_all_teams(client, settings, sent, is_for_all):
    settings.HOSTS_URL = "https://server:8743"
    team = make_team()
    client.force_login(make_user("admin", team=team))
    assert client.post("/fleet/hosts/add/", {"role": "env"} | sent).status_code == 200
    assert JoinToken.objects.get().team == (None if is_for_all else team)


@pytest.fixture
def between(tmp_path) -> Iterator[dict[str, str]]:
    """A machine that stands in between, and answers with `authority` for the server's."""
    pair = make_self_signed("127.0.0.1", days=1)
    (tmp_path / "between.pem").write_text(pair.certificate + pair.key)
    said = {"own": pair.certificate}
    with answering(lambda _: Answer(said["authority"].encode()), pair=tmp_path / "between.pem") as url:
        said["url"] = url
        yield said


def test_of_an_authority_only_the_certificate_that_was_compared_is_trusted(between, tmp_path):
    authority = Authority.of(tmp_path)
    for sent in (
        authority.certificate + between["own"],
        f"words before\n{authority.certificate}\n{between['own']}",
    ):
        between["authority"] = sent
        trusted = fetch_authority(between["url"], authority.fingerprint)
        assert trusted.count("BEGIN CERTIFICATE") == 1
        assert fingerprint_of(trusted) == authority.fingerprint
        assert "words" not in trusted


def test_another_authority_is_refused(between, tmp_path):
    authority = Authority.of(tmp_path)
    between["authority"] = between["own"] + authority.certificate
    with pytest.raises(CommandError, match="not the one that the token names"):
        fetch_authority(between["url"], authority.fingerprint)


@pytest.mark.parametrize(("typed", "token"), [("abc.def\n", "abc.def"), ("  abc  \n", "abc")])
def test_the_token_is_read_from_standard_input(monkeypatch, typed, token):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert read_token() == token


def test_without_a_token_the_command_says_where_one_is(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(CommandError, match="page Add a host"):
        read_token()


def come(token: str, name: str) -> None:
    joining.join(token=token.partition(".")[0], name=name, roles=["env"], sent_version=version())


@pytest.mark.django_db
def test_a_token_for_a_group_is_good_until_its_count_its_date_or_its_end(settings):
    settings.HOSTS_URL = "https://server:8743"
    token = invite("--hosts", "2", "--hours", "48")
    come(token, "pod-a")
    come(token, "pod-b")
    with pytest.raises(joining.JoinRefused, match="used up"):
        come(token, "pod-c")
    anyone = invite("--hours", "1")
    come(anyone, "pod-c")
    (row,) = joining.usable_tokens()
    assert invite("--list").startswith(f"{row.pk}: env, 1 of any number, until ")
    invite("--end", str(row.pk))
    with pytest.raises(joining.JoinRefused, match="too old"):
        come(anyone, "pod-d")
    with pytest.raises(CommandError, match="--end"):
        invite("--end", str(row.pk))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "named"),
    [(["--roles", "root"], "--roles root"), (["--hours", "0"], "--hours"), (["--team", "x"], "--team x")],
)
def test_a_wrong_invitation_is_refused_by_name(settings, words, named):
    settings.HOSTS_URL = "https://server:8743"
    with pytest.raises(CommandError, match=named):
        invite(*words)


def invite(*words: str) -> str:
    said = io.StringIO()
    call_command("invite_hosts", *words, stdout=said)
    return said.getvalue().strip()
