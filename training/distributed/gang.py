"""The hosts of one trainer, as a file names them to each."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Gang:
    """The hosts that train together, as each of them knows it."""

    host: int
    """This one's place."""
    addresses: tuple[tuple[str, int], ...]
    """IP address of each host in the network that the operator named, with a port; that of the first one is
    where the ranks meet."""
    interface: str
    """This host's, in that network."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Of JSON: host, addresses ["IP:PORT", ...] and interface. Raises ValueError."""
        try:
            found = json.loads(path.read_text())
            addresses = tuple(_address(text) for text in found["addresses"])
            gang = cls(int(found["host"]), addresses, str(found["interface"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: {error!r}; a gang has host, addresses and interface") from error
        if not 0 <= gang.host < len(addresses):
            raise ValueError(f"{path}: host {gang.host} is none of its {len(addresses)} addresses")
        return gang


def _address(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":")
    if not name or not port.isdigit():
        raise ValueError(f"{text!r} is no address: write IP:PORT")
    return name, int(port)
