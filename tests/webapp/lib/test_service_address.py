"""Where a server listens and what others are told: loopback unless both make sense."""

import pytest

from webapp.lib.host_links.service_address import ServiceAddress, read_service_address


@pytest.mark.parametrize(
    ("advertised", "listen", "expected"),
    [
        ("", "", ServiceAddress("127.0.0.1", "127.0.0.1")),
        ("10.0.0.7", "", ServiceAddress("10.0.0.7", "10.0.0.7")),
        ("gpu1.lab", "0.0.0.0", ServiceAddress("0.0.0.0", "gpu1.lab")),
        ("gpu1.lab", "10.0.0.7", ServiceAddress("10.0.0.7", "gpu1.lab")),
        ("localhost", "127.0.0.1", ServiceAddress("127.0.0.1", "localhost")),
    ],
)
def test_what_is_given_is_used(advertised, listen, expected):
    assert read_service_address(advertised, listen, "X") == expected


@pytest.mark.parametrize(
    ("advertised", "listen", "problem"),
    [
        ("", "0.0.0.0", "set X too"),
        ("0.0.0.0", "", "no host can connect to that"),
        ("::", "", "no host can connect to that"),
        ("10.0.0.7", "127.0.0.1", "loopback only"),
        ("127.0.0.1", "0.0.0.0", "loopback only"),
    ],
)
def test_what_cannot_work_is_refused_with_the_variable(advertised, listen, problem):
    with pytest.raises(ValueError, match=f"^X.*{problem}"):
        read_service_address(advertised, listen, "X")


def test_an_ipv6_address_is_bracketed_in_urls():
    assert read_service_address("fd00::7", "", "X").url_host == "[fd00::7]"
    assert not read_service_address("fd00::7", "", "X").is_local
