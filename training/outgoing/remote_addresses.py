"""Addresses that a config may send our workers to: public ones, and the networks that the installation names.

A URL in a config is a person's wish to have a request made from inside: without this rule it reaches the
metadata service of a cloud, the Redis beside the worker, or a router's page.
"""

import ipaddress
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
VARIABLE = "DESKHAND_REMOTE_NETWORKS"
TRANSLATED = tuple(ipaddress.IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "::/96"))
"""Networks of IPv6 whose last 32 bits are an address of IPv4: NAT64, and the old compatible form."""


class RefusedAddress(ValueError):
    """Raised for an address that the installation does not allow; the message says what to do."""


def read_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Networks by their CIDR texts. Raises ValueError naming the variable."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {error}; write 10.0.0.0/8,192.168.1.5/32") from error


def check_address(address: Address, allowed: Sequence[Network], host: str) -> None:
    """Raise RefusedAddress for a private, loopback, link-local or reserved address that is not allowed."""
    meant = _meant(address)
    if any(one in network for one in (address, meant) for network in allowed):
        return
    if not meant.is_global or meant.is_multicast:
        raise RefusedAddress(
            f"{host} is {address}, no public address; an administrator allows its network in {VARIABLE}"
        )


def _meant(address: Address) -> Address:
    """The address of IPv4 that one of IPv6 leads to, where it leads to one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server there; of names only `localhost` counts."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_within_machine(host: str) -> bool:
    """Whether a host's name or address leads to the machine itself, or to what only it may reach."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return is_loopback(host.lower().rstrip(".")) or not host
    return address.is_loopback or address.is_link_local or address.is_unspecified


def check_url(url: str, allowed: Sequence[Network]) -> None:
    """The same for the host of a URL as far as it is written there: no name is looked up."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost" or host.endswith(".localhost"):
            check_address(ipaddress.ip_address("127.0.0.1"), allowed, host)
        return
    check_address(address, allowed, host)


def allowed_addresses(host: str, port: int, allowed: Sequence[Network]) -> list[str]:
    """What `host` stands for now, looked up once. Raises RefusedAddress for any of it that is, OSError."""
    try:
        found = [str(item[4][0]) for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except UnicodeError as error:
        raise RefusedAddress(f"{host[:80]!r} cannot be the name of a host") from error
    for text in found:
        check_address(ipaddress.ip_address(text.partition("%")[0]), allowed, host)
    return list(dict.fromkeys(found))
