"""Make this machine a host of another installation."""

import json
import os
import socket
import sys
from argparse import ArgumentParser
from getpass import getpass
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.lib.host_links.certificates import context_trusting, fingerprint_of, first_certificate
from webapp.lib.host_links.joined_identity import ROLES, SHARED_VARIABLES, JoinedIdentity

TIMEOUT_S = 20.0


class Command(BaseCommand):
    help = (
        "Join the installation at --server with a token of its page Add a host, from the terminal or "
        "standard input. An identity is kept here."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--server", required=True, help="https://NAME:PORT")
        parser.add_argument(
            "--roles",
            default="env",
            help="env: desktops and rollouts; gpu: trainers and policy servers",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        server = options["server"].rstrip("/")
        if not server.startswith("https://"):
            raise CommandError(f"--server {server}: write https://NAME:PORT")
        roles = tuple(dict.fromkeys(options["roles"].split(",")))
        if unknown := set(roles) - set(ROLES):
            raise CommandError(
                f"--roles {','.join(sorted(unknown))}: a joined host can be {', '.join(ROLES)}"
            )
        if "gpu" in roles and settings.POLICY_SERVER.is_local:
            raise CommandError(
                "--roles gpu: set DESKHAND_POLICY_ADDRESS to this machine's name or address in your network; "
                "env hosts ask the policy server there"
            )
        if settings.JOINED is not None:
            raise CommandError(
                f"this host works for {settings.JOINED.server}; delete {settings.DATA_DIR}/host.json first"
            )
        secret, _, fingerprint = read_token().partition(".")
        authority = fetch_authority(server, fingerprint) if fingerprint else ""
        name = os.environ.get("DESKHAND_HOST_NAME") or socket.gethostname()
        welcome = ask_to_join(server, authority, secret, name, roles)
        identity = JoinedIdentity(
            server=server,
            name=welcome["name"],
            secret=welcome["secret"],
            authority=authority,
            environment={
                name: str(value) for name, value in welcome["environment"].items() if name in SHARED_VARIABLES
            },
            roles=roles,
        )
        identity.write(settings.DATA_DIR)
        self.stdout.write(f"{name} has joined {server}; `make host` starts it")


def read_token() -> str:
    """Never an argument: those stand in the shell's history and in the list of processes."""
    token = getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip():
        raise CommandError("token: none was given; the page Add a host shows one")
    return token.strip()


def fetch_authority(server: str, fingerprint: str) -> str:
    """The server's own authority (PEM): that one certificate and nothing that came with it.

    Raises CommandError unless it is the one that the token names.
    """
    # Not verified: what comes is compared with the token, which came another way.
    try:
        answer = httpx.get(f"{server}/hosts/authority.pem", verify=False, timeout=TIMEOUT_S, trust_env=False)
        authority = first_certificate(answer.text)
    except (httpx.TransportError, ValueError) as error:
        raise CommandError(
            f"--server {server}: {error}; is it the address of the page Add a host?"
        ) from error
    if fingerprint_of(authority) != fingerprint:
        raise CommandError(
            f"--server {server}: its certificate is not the one that the token names. Another machine may "
            "stand in between; nothing was sent to it"
        )
    return authority


def ask_to_join(
    server: str, authority: str, secret: str, name: str, roles: tuple[str, ...]
) -> dict[str, Any]:
    """What the server gives this host. Raises CommandError with its words."""
    from webapp.worker_door.joined_hosts.contract_version import version  # models: after the settings

    body = {"token": secret, "name": name, "roles": roles, "version": version()}
    try:
        with httpx.Client(verify=context_trusting(authority), timeout=TIMEOUT_S, trust_env=False) as client:
            answer = client.post(f"{server}/hosts/join/", json=body)
    except httpx.TransportError as error:
        raise CommandError(f"--server {server}: {error}") from error
    try:
        values: dict[str, Any] = answer.json()
    except json.JSONDecodeError as error:
        raise CommandError(f"--server {server}: no Deskhand answered there ({answer.status_code})") from error
    if not answer.is_success:
        raise CommandError(values["error"]["message"])
    return values
