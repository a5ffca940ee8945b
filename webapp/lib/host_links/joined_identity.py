"""What a joined host keeps of its installation: a private file in its data folder, and no database."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "host.json"
ROLES = ("env", "gpu")
"""Desktops with their rollouts; trainers with their policy servers."""
SHARED_VARIABLES = (
    *("DESKHAND_REMOTE_NETWORKS", "DESKHAND_GATEWAY_VENDORS", "DESKHAND_OSWORLD_PYTHONS"),
    *("DESKHAND_OSWORLD_DIRS", "DESKHAND_OSWORLD_VARIABLES", "DESKHAND_ALLOW_HOST_CODE"),
)
"""What an installation allows configs to do on its hosts: the only settings that a host takes from it."""


@dataclass(frozen=True, slots=True)
class JoinedIdentity:
    """Who this host is, and for whom it works."""

    server: str
    """https://NAME:PORT"""
    name: str
    secret: str
    authority: str
    """PEM of the only authority to trust; "" = those of the system."""
    environment: dict[str, str]
    """Settings that the server gave; variables of this host's own go first."""
    roles: tuple[str, ...] = ROLES[:1]
    """What it is used for."""

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f".{FILE}.new"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(folder / FILE)


def read_identity(folder: Path) -> JoinedIdentity | None:
    """None on a host that has not joined another one. Raises ValueError naming the file."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return JoinedIdentity(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}; join again with `make join`") from error
