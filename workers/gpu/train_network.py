"""This host in the network by which the ranks of several hosts exchange gradients."""

import ipaddress
import logging
import socket
from dataclasses import dataclass
from functools import cache

import psutil
from django.conf import settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrainAddress:
    """Where the ranks of other hosts reach this one's."""

    address: str
    interface: str


def own_train_address() -> TrainAddress | None:
    """By DESKHAND_TRAIN_NETWORK; None without it, or where this host is not in that network."""
    named = settings.TRAIN_NETWORK
    if not named:
        return None
    for interface, addresses in psutil.net_if_addrs().items():
        for one in addresses:
            if one.family == socket.AF_INET and (interface == named or _is_in(one.address, named)):
                return TrainAddress(one.address, interface)
    _warn(named)
    return None


def _is_in(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except ValueError:  # the name of an interface
        return False


@cache
def _warn(named: str) -> None:
    log.warning(
        "DESKHAND_TRAIN_NETWORK: this host has no interface %s and no IPv4 address in such a network; "
        "it takes no part of experiments over several hosts",
        named,
    )
