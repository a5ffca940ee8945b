"""Several networks of their own whose hosts reach each other by this machine. Needs root."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testing.linked_network import Network, network
from testing.small_disk import do

FORWARDS = Path("/proc/sys/net/ipv4/ip_forward")


@contextmanager
def routed_networks(count: int) -> Iterator[list[Network]]:
    """Gone afterwards, and this machine forwards what it forwarded before. Raises NoGround."""
    before = FORWARDS.read_text()
    with ExitStack() as stack:
        links = [stack.enter_context(network(number)) for number in range(count)]
        for link in links:
            do("ip", "-n", link.name, "route", "add", "default", "via", link.near)
            stack.enter_context(_let_through(link))
        stack.callback(FORWARDS.write_text, before)
        FORWARDS.write_text("1")
        yield links


@contextmanager
def _let_through(link: Network) -> Iterator[None]:
    """A container engine makes the machine drop whatever it forwards for others."""
    if shutil.which("iptables") is None:
        yield
        return
    rule = ("FORWARD", "-i", link.link, "-j", "ACCEPT")
    do("iptables", "-I", *rule)
    try:
        yield
    finally:
        do("iptables", "-D", *rule)
