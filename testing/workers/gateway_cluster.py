"""A sandbox cluster on this machine: HTTPS with its own CA, faults on demand, real x11 desktops behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.workers.asgi_faults import Misbehaving
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from testing.workers.tls import Tls, make_tls
from workers.desktops.host.client import DeskHostClient
from workers.env_server.episodes import Episodes

SECRET = "sandbox-token"
SECRET_VARIABLE = "DESKHAND_SECRET_SANDBOX_TOKEN"
OWNER = "deskhand-tests"


@dataclass(frozen=True)
class Cluster:
    url: str
    tls: Tls
    episodes: Episodes
    door: Misbehaving

    def knobs(self, **changes: Any) -> dict[str, Any]:
        """The config section `desktops.gateway` for it."""
        return {
            "endpoint": self.url,
            "token_secret": SECRET,
            "owner": OWNER,
            "ca_file": str(self.tls.authority),
            **changes,
        }

    def behave(self) -> None:
        """Forget faults, requests and sandboxes."""
        self.door.faults.clear()
        self.door.requests.clear()
        self.episodes.close_all()


@contextmanager
def running_cluster(desk_client: DeskHostClient, folder: Path, max_sandboxes: int) -> Iterator[Cluster]:
    tls = make_tls(folder)
    episodes = episodes_over(desk_client, max_episodes=max_sandboxes)
    door = Misbehaving(application(episodes, token=TOKEN))
    with serving(door, certificate=tls.certificate, key=tls.key) as url:
        yield Cluster(url, tls, episodes, door)
