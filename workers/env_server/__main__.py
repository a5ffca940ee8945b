"""`python -m workers.env_server --socket PATH --port 8100`: lend our desktops to trainers elsewhere.

The desk host must run. The token is the secret named by --token-secret and is made when it is missing.
"""

import argparse
import logging
import os
import re
import sys
from pathlib import Path

import uvicorn

from training.content.task_sets import first_desk
from training.contracts.config import DEFAULT_PROVIDER
from training.contracts.types import Task
from training.log_lines import VARIABLE as LOG_VARIABLE
from training.log_lines import LogFormat, set_up_logging
from training.outgoing.remote_addresses import is_loopback
from training.outgoing.secret_store import SecretError, read_secret, stored_secret, variable_of
from training.tasks.importers import load_tasks
from training.tasks.task_json import LoadError
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.env_server.episodes import Episodes
from workers.env_server.request import ServerFacts
from workers.env_server.server import EnvServer
from workers.environments.contract import EnvironmentRequest
from workers.environments.local import LocalEnvironment

SHIPPED_TASKS = "first-desk"
LEASE_S = 60.0
"""Longer than a stall of a busy machine; a killed server's desktops are taken back after as long."""


def screen(text: str) -> tuple[int, int]:
    """WIDTHxHEIGHT."""
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}: write it like 1280x720")
    return int(match[1]), int(match[2])


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    data = Path(os.environ.get("DESKHAND_DATA_DIR", "var"))
    parser = argparse.ArgumentParser(prog="python -m workers.env_server", description=__doc__)
    add = parser.add_argument
    add("--socket", type=Path, default=data / "run" / "deskhost.sock", help="the desk host's unix socket")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8100)
    add("--provider", default=DEFAULT_PROVIDER, help="which desktops of the desk host to lend")
    add("--screen", type=screen, default=(1280, 720), help="when neither task nor client names one")
    add("--tasks", default=SHIPPED_TASKS, help="task set of OpenEnv's clients: first-desk, or a path")
    add("--max-episodes", type=int, default=8, help="desktops lent at once; above it the answer is 429")
    add("--ttl-s", type=float, default=600.0, help="an episode silent for this long is closed")
    add("--wait-s", type=float, default=900.0, help="how long POST /envs waits for a free desktop")
    add("--token-secret", default="env-server", help="name of the secret that clients must send")
    add("--secrets-dir", type=Path, default=data / "secrets")
    add("--no-token", action="store_true", help="let every process of this machine in (loopback only)")
    add("--certificate", type=Path, help="TLS certificate chain, PEM")
    add("--key", type=Path, help="its private key, PEM")
    return parser.parse_args(argv)


def token_of(options: argparse.Namespace) -> str:
    """The token that clients must send; "" = none. Raises SecretError."""
    if options.no_token:
        if not is_loopback(options.host):
            raise SecretError("--no-token is for 127.0.0.1 only: any client of this port drives desktops")
        return ""
    path = options.secrets_dir / options.token_secret
    if not os.environ.get(variable_of(options.token_secret)):
        stored_secret(path)
        logging.info("clients send the token in %s", path)
    return read_secret(options.token_secret, options.secrets_dir)


def tasks_of(source: str) -> tuple[Task, ...]:
    """The shipped set, or the tasks of a file or folder. Raises LoadError."""
    return tuple(first_desk.generate() if source == SHIPPED_TASKS else load_tasks(Path(source)).tasks)


def server_of(options: argparse.Namespace) -> EnvServer:
    """The server over the desk host's desktops."""

    def opener(request: EnvironmentRequest) -> LocalEnvironment:
        return LocalEnvironment.lease(DeskHostClient(options.socket), request, wait_s=0.0, ttl_s=LEASE_S)

    episodes = Episodes(opener, max_episodes=options.max_episodes, ttl_s=options.ttl_s)
    facts = ServerFacts(episodes, options.provider, options.screen, tasks_of(options.tasks))
    return EnvServer(facts, token=token_of(options), wait_s=options.wait_s)


def main(argv: list[str] | None = None) -> int:
    set_up_logging(
        "%(asctime)s env server %(levelname)s %(message)s", LogFormat.read(os.environ.get(LOG_VARIABLE))
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would name every request
    options = parse(argv)
    try:
        server = server_of(options)
        health = DeskHostClient(options.socket).health()
    except (SecretError, EnvError, LoadError) as error:
        sys.stderr.write(f"env server: {error}\n")
        return 1
    known = [provider.provider for provider in health.providers]
    if options.provider not in known:
        sys.stderr.write(f"env server: --provider {options.provider}: the desk host has {', '.join(known)}\n")
        return 1
    uvicorn.run(
        server.application(),
        host=options.host,
        port=options.port,
        access_log=False,  # a path may hold the token
        log_level="info",
        timeout_graceful_shutdown=10,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
