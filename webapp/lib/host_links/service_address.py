"""Where a server of ours listens, and the name under which other hosts reach it."""

import ipaddress
from dataclasses import dataclass

from training.outgoing.remote_addresses import is_loopback

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Two sides of one server."""

    listen: str
    """IP address or name of the interface."""
    advertised: str
    """IP address or name that others connect to."""

    @property
    def is_local(self) -> bool:
        """Only this host reaches it: no TLS is needed."""
        return is_loopback(self.listen)

    @property
    def url_host(self) -> str:
        """`advertised` as a URL writes it."""
        return f"[{self.advertised}]" if ":" in self.advertised else self.advertised


def read_service_address(advertised: str, listen: str, variable: str) -> ServiceAddress:
    """From the variables `variable` (advertised) and `variable`_LISTEN; loopback without either.

    Raises ValueError naming the variable. No server listens on every interface unless that is asked for.
    """
    if not advertised:
        if listen:
            raise ValueError(f"{variable}_LISTEN={listen}: set {variable} too, what others connect to")
        return ServiceAddress(LOOPBACK, LOOPBACK)
    if _is_every_interface(advertised):
        raise ValueError(
            f"{variable}={advertised}: no host can connect to that; name an address of this host"
        )
    listen = listen or advertised
    if is_loopback(listen) is not is_loopback(advertised):
        raise ValueError(f"{variable}_LISTEN={listen}: it or {variable}={advertised} is loopback only")
    return ServiceAddress(listen, advertised)


def _is_every_interface(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_unspecified
    except ValueError:
        return False
