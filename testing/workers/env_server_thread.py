"""A real env server (uvicorn, sockets) in a thread, over the test run's desk host."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from training.content.task_sets import first_desk
from training.contracts.types import Task
from workers.desktops.host.client import DeskHostClient
from workers.env_server.__main__ import LEASE_S
from workers.env_server.episodes import Episodes, Opener
from workers.env_server.request import ServerFacts
from workers.env_server.server import EnvServer
from workers.environments.contract import EnvironmentRequest
from workers.environments.local import LocalEnvironment

TOKEN = "a-token-of-the-tests"
START_S = 60.0


def episodes_over(
    desk_client: DeskHostClient, *, max_episodes: int = 2, ttl_s: float = 120.0, lend: Opener | None = None
) -> Episodes:
    """Episodes on the desk host's x11 desktops, leased by `lend` where it is given."""
    path = desk_client.socket_path

    def lease(request: EnvironmentRequest) -> LocalEnvironment:
        return LocalEnvironment.lease(DeskHostClient(path), request, wait_s=0.0, ttl_s=LEASE_S)

    return Episodes(lend or lease, max_episodes=max_episodes, ttl_s=ttl_s)


def application(
    episodes: Episodes, *, token: str = TOKEN, wait_s: float = 60.0, tasks: tuple[Task, ...] = ()
) -> ASGIApp:
    """`tasks` are its own; First desk's without."""
    facts = ServerFacts(episodes, "x11", (512, 384), tasks or tuple(first_desk.generate()))
    return EnvServer(facts, token=token, wait_s=wait_s).application()


@contextmanager
def serving(app: ASGIApp, *, certificate: Path | None = None, key: Path | None = None) -> Iterator[str]:
    """The URL of a server of `app`; https with a certificate."""
    config = uvicorn.Config(
        app,
        port=0,
        log_level="warning",
        access_log=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="served-app", daemon=True)
    thread.start()
    deadline = time.monotonic() + START_S
    while not server.started:
        assert thread.is_alive(), "the server ended at its start"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)
