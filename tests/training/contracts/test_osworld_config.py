"""What a config may say of DesktopEnv's proxies."""

import pytest

from training.contracts.config import ConfigError, parse_config

FILE = ["PROXY_CONFIG_FILE"]


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ({"machines": "x11", "pass_variables": FILE}, "desktops.osworld.enable_proxy"),
        ({"machines": "docker"}, "desktops.osworld.pass_variables"),
        ({"machines": "docker", "pass_variables": FILE}, ""),
    ],
)
def test_a_proxy_needs_osworlds_own_machines_and_its_file(knobs, field):
    values = {"desktops": {"provider": "osworld", "osworld": {"enable_proxy": True, **knobs}}}
    if not field:
        assert parse_config(values).desktops.osworld.enable_proxy
        return
    with pytest.raises(ConfigError) as caught:
        parse_config(values)
    assert set(caught.value.problems) == {field}
