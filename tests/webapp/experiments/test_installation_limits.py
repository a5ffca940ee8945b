"""What an operator's config may not touch unless the administrator says so."""

import ipaddress
import os

import pytest
from django.core.management import CommandError, call_command

from testing.factories import make_experiment, make_team
from training.contracts.config import ConfigError, parse_config
from training.outgoing.remote_addresses import RefusedAddress, allowed_addresses, check_url
from training.outgoing.secret_grants import FILE, is_below
from webapp.experiments.installation_limits import limit_problems
from webapp.experiments.models import Experiment
from webapp.experiments.services.experiments import queue_experiment

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def private_secrets(settings, tmp_path):
    settings.SECRETS_DIR = tmp_path / "secrets"


def problems(team, **desktops):
    config = parse_config({"desktops": desktops})
    return dict(limit_problems(config, team))


def remote(url, **more):
    return {"provider": "remote", "remote": {"urls": [url], "slots_per_url": 64, **more}}


REFUSED = {
    "a program": ({"provider": "osworld", "osworld": {"python": "/bin/sh"}}, "osworld.python"),
    "a folder to write": ({"provider": "osworld", "osworld": {"downloads": "/etc"}}, "osworld.downloads"),
    "a variable": (
        {"provider": "osworld", "osworld": {"pass_variables": ["DESKHAND_SECRET_KEY"]}},
        "osworld.pass_variables",
    ),
    "code of the agent": (
        {"provider": "osworld", "osworld": {"allow_host_code": True}},
        "osworld.allow_host_code",
    ),
    "an object of Python": (
        {"provider": "gateway", "gateway": {"vendor": "builtins:getattr"}},
        "gateway.vendor",
    ),
    "metadata of a cloud": (remote("http://169.254.169.254"), "remote.urls"),
    "a private network": (remote("http://10.0.0.5:8100"), "remote.urls"),
    "the host itself": (remote("http://[::ffff:127.0.0.1]:8763"), "remote.urls"),
    "the host by name": (remote("http://localhost:8763"), "remote.urls"),
    "a secret of others": (
        remote("https://a.example.com", token_secret="prize"),
        "remote.token_secret",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_allowed_is_refused_by_its_field(name, settings):
    settings.REMOTE_NETWORKS = ()
    desktops, field = REFUSED[name]
    team = make_team()
    assert list(problems(team, **desktops)) == [f"desktops.{field}"]
    config = parse_config({"desktops": desktops})
    with pytest.raises(ConfigError, match=rf"desktops\.{field}"):
        queue_experiment(team=team, owner=None, name="x", config=config)
    assert not Experiment.objects.exists()


def test_what_the_administrator_allows_is_allowed(settings, tmp_path):
    settings.OSWORLD_PYTHONS, settings.OSWORLD_DIRS = ["/opt/osworld/python"], [tmp_path]
    settings.OSWORLD_VARIABLES, settings.ALLOW_HOST_CODE = ["AWS_REGION"], True
    settings.GATEWAY_VENDORS = ["acme.deskhand:Vendor"]
    settings.REMOTE_NETWORKS = (ipaddress.ip_network("10.0.0.0/24"),)
    team = make_team()
    osworld = {
        "python": "/opt/osworld/python",
        "downloads": str(tmp_path / "files"),
        "pass_variables": ["AWS_REGION"],
        "allow_host_code": True,
    }
    assert problems(team, provider="osworld", osworld=osworld) == {}
    assert problems(team, provider="gateway", gateway={"vendor": "acme.deskhand:Vendor"}) == {}
    assert problems(team, **remote("http://10.0.0.5:8100")) == {}
    assert list(problems(team, **remote("http://10.0.1.5:8100"))) == ["desktops.remote.urls"]


def test_a_link_in_an_allowed_folder_leads_nowhere_else(settings, tmp_path):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "out").symlink_to("/etc")
    settings.CHECKPOINT_DIRS = [tmp_path / "allowed"]
    for folder, expected in (
        (tmp_path / "allowed" / "a", 0),
        (tmp_path / "allowed" / "out", 1),
        ("/tmp/x", 1),
    ):
        config = parse_config({"checkpoints": {"directory": str(folder)}})
        assert len(dict(limit_problems(config, make_team()))) == expected
    config = parse_config({"checkpoints": {"directory": str(tmp_path / "allowed" / ".." / "other")}})
    assert "checkpoints.directory" in dict(limit_problems(config, make_team()))


def test_arguments_of_sglang_that_load_code_are_refused(settings):
    def named(argument):
        engine = {"name": "sglang", "extra_arguments": [argument]}
        return list(dict(limit_problems(parse_config({"engine": engine}), make_team())))

    assert named("--trust-remote-code") == named("--tokenizer-path=/root") == ["engine.extra_arguments"]
    assert named("--max-total-tokens=32768") == []
    settings.SGLANG_ARGUMENTS = ["trust-remote-code"]
    assert named("--trust-remote-code") == []


def test_a_secret_goes_where_it_was_granted_to_and_nowhere_else(settings):
    mine, other = make_team(), make_team()
    url = "https://cluster.example.com/api"
    call_command("grant_secret", "prize", mine.name, "https://cluster.example.com/", verbosity=0)
    assert os.stat(settings.SECRETS_DIR / FILE).st_mode & 0o077 == 0
    assert problems(mine, **remote(url, token_secret="prize")) == {}
    assert "not granted to the team" in str(problems(other, **remote(url, token_secret="prize")))
    for elsewhere in (
        "https://cluster.example.com.evil.org",
        "http://cluster.example.com",
        "https://evil.org",
    ):
        found = problems(mine, **remote(elsewhere, token_secret="prize"))
        assert "may not be sent to" in found["desktops.remote.token_secret"]
    with pytest.raises(CommandError, match="there is no team"):
        call_command("grant_secret", "prize", "no-such-team")


@pytest.mark.parametrize(
    ("url", "start", "expected"),
    [
        ("https://a.b/x/y", "https://a.b/x", True),
        ("https://a.b/xy", "https://a.b/x", False),
        ("https://a.b/x/../z", "https://a.b/x", False),
        ("https://a.b/x/%2e%2E/z", "https://a.b/x", False),
        ("https://a.b/x/%252e%252e/z", "https://a.b/x", False),
        ("https://a.b/x/%2e", "https://a.b/x", True),
        ("https://a.b:8443", "https://a.b", False),
        ("https://a.b", "https://a.b/", True),
    ],
)
def test_a_url_is_below_another_by_whole_parts(url, start, expected):
    assert is_below(url, start) is expected


def test_a_checkpoint_of_another_team_is_no_model(settings, tmp_path):
    settings.DATA_DIR, settings.EXPERIMENTS_DIR = tmp_path, tmp_path / "experiments"
    theirs = make_experiment()
    folder = tmp_path / "experiments" / str(theirs.pk) / "checkpoints" / "00003"
    recorded = tmp_path / "elsewhere" / "00004"
    for place in (folder, recorded):
        (place / "model").mkdir(parents=True)
        (place / "model" / "config.json").write_text("{}")
    theirs.checkpoints.create(step=4, policy_version=1, path=str(recorded))
    (tmp_path / "link").symlink_to(recorded)
    paths = [
        folder,
        folder / "model",
        recorded / "model",
        tmp_path / "link",
        f"experiments/{theirs.pk}/checkpoints/00003",
    ]
    for path in paths:
        config = parse_config({"model": {"path": str(path)}})
        assert "belongs to the team" in dict(limit_problems(config, make_team()))["model.path"]
        assert dict(limit_problems(config, theirs.team)) == {}


def test_a_name_that_stands_for_a_private_address_is_refused():
    with pytest.raises(RefusedAddress, match="DESKHAND_REMOTE_NETWORKS"):
        allowed_addresses("localhost", 80, ())
    loopback = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
    assert allowed_addresses("localhost", 80, loopback)
    with pytest.raises(RefusedAddress, match="cannot be the name of a host"):
        allowed_addresses("a" * 70 + ".example", 80, ())
    inside = (
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a9fe:a9fe",
        "::10.0.0.1",
        "::1",
    )
    for address in inside:
        with pytest.raises(RefusedAddress, match="no public address"):
            check_url(f"http://[{address}]/", ())
    check_url("http://[64:ff9b::8.8.8.8]/", ())
    check_url("http://[::1]/", loopback)
    check_url("https://sandboxes.example.com", ())
