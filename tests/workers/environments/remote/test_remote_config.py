"""What a config may say of env servers elsewhere, and what it may not."""

import pytest

from training.contracts.config import ConfigError, parse_config


def problems(**desktops: object) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse_config({"desktops": desktops})
    return caught.value.problems


def test_it_names_what_it_lacks():
    assert set(problems(provider="remote")) == {"desktops.remote.urls"}
    found = problems(provider="remote", num_desktops=5, remote={"urls": ["http://a:1"], "slots_per_url": 4})
    text = "the remote servers offer 4 desktops: 1 in desktops.remote.urls, 4 slots_per_url"
    assert found == {"desktops.num_desktops": text}


@pytest.mark.parametrize(
    "url",
    [
        "a:1", "ftp://a", "http://user:secret@a", "http://a/token/secret", "http://a?token=secret", "http://[",
        "http://a:99999",
    ],
)  # fmt: skip
def test_a_url_is_a_plain_address_and_never_holds_a_secret(url):
    assert set(problems(remote={"urls": [url]})) == {"desktops.remote.urls"}


def test_urls_are_compared_without_their_final_slash():
    config = parse_config({"desktops": {"remote": {"urls": ["http://a:1/", "http://b:1"]}}})
    assert config.desktops.remote.urls == ("http://a:1", "http://b:1")
    assert "twice" in problems(remote={"urls": ["http://a:1/", "http://a:1"]})["desktops.remote.urls"]
