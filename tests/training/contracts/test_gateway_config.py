"""What a config may say of rented sandboxes, and what it may not."""

import pytest

from training.contracts.config import ConfigError, from_yaml, parse_config, to_yaml


def problems(**desktops: object) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse_config({"desktops": desktops})
    return caught.value.problems


def test_it_names_what_it_lacks():
    assert set(problems(provider="gateway")) == {
        "desktops.gateway.endpoint",
        "desktops.gateway.token_secret",
    }


def test_a_gateway_is_reached_by_https_only():
    assert "https" in problems(gateway={"endpoint": "http://a"})["desktops.gateway.endpoint"]


def test_a_vendors_adapter_brings_its_own_endpoint():
    values = {"desktops": {"provider": "gateway", "gateway": {"vendor": "our_company.sandboxes:make"}}}
    config = parse_config(values)
    assert from_yaml(to_yaml(config)) == config
    assert set(problems(gateway={"vendor": "os.system('x')"})) == {"desktops.gateway.vendor"}
