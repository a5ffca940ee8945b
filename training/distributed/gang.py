"""The hosts of one trainer, as a file tells each of them."""

from __future__ import annotations

import hashlib
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Gang:
    """The hosts that train together, as each of them knows it."""

    host: int
    """This one's place."""
    addresses: tuple[tuple[str, int], ...]
    """Name or IP address and port of each host's mesh, as the others reach it."""
    certificate: Path
    """PEM; of the gang, the only one that members trust."""
    key: Path
    """PEM; having it makes a member."""
    listen: str = ""
    """The interface that this host's mesh listens on; "" = that of its address."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Of JSON: host, addresses ["NAME:PORT", ...], certificate and key (paths), perhaps listen.

        Raises ValueError."""
        try:
            found = json.loads(path.read_text())
            addresses = tuple(_address(text) for text in found["addresses"])
            certificate, key = Path(found["certificate"]), Path(found["key"])
            gang = cls(int(found["host"]), addresses, certificate, key, found.get("listen", ""))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: {error!r}; a gang has host, addresses, certificate and key") from error
        if not 0 <= gang.host < len(addresses) <= 250:
            raise ValueError(f"{path}: host {gang.host} is none of its {len(addresses)} addresses")
        return gang

    def loopback_of(self, host: int) -> str:
        """Where the ranks of that host listen. Gangs whose hosts are the same have addresses of their own."""
        one, two = hashlib.sha256(self.certificate.read_bytes()).digest()[:2]
        return f"127.{64 + one % 64}.{two}.{host + 1}"

    @property
    def others(self) -> list[int]:
        return [host for host in range(len(self.addresses)) if host != self.host]

    def contexts(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        """(of a server, of a client): both show the gang's certificate and want to see it."""
        made = []
        for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
            context = ssl.SSLContext(protocol)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.check_hostname = False  # the key says who is a member, no name does
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificate)
            context.load_cert_chain(self.certificate, self.key)
            made.append(context)
        return made[0], made[1]


def _address(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":")
    if not name or not port.isdigit():
        raise ValueError(f"{text!r} is no address: write NAME:PORT")
    return name, int(port)
