"""Programs beside the installation that some attacks meet: a policy server, a certificate of one's own."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from testing.linked_network import Network
from testing.training.tiny_model import tiny_folder
from testing.watch_installation import wait_for
from training.contracts.policy_server import host_token
from webapp.lib.host_links.certificates import Authority, fingerprint_of, make_self_signed

SECRET = "of-the-attempt"
START_S = 120


@contextmanager
def extras_of(stage: str, tree: Path, link: Network) -> Iterator[dict[str, Any]]:
    """What a stage's attacks find beside the installation, from the same tree."""
    if stage == "policy":
        with _policy_server(tree, link) as found:
            yield found
    elif stage == "in between":
        yield _pair()
    else:
        yield {}


def _pair() -> dict[str, Any]:
    """A certificate of the machine in between, and the fingerprint that the honest host's token names."""
    from django.conf import settings

    own = make_self_signed("127.0.0.1", days=1)
    return {
        "pair": own.certificate + own.key,
        "own_certificate": own.certificate,
        "own_fingerprint": fingerprint_of(own.certificate),
        "fingerprint": Authority.of(settings.SECRETS_DIR).fingerprint,
    }


@contextmanager
def _policy_server(tree: Path, link: Network) -> Iterator[dict[str, Any]]:
    """Of the tests' tiny model, over TLS; one host was revoked."""
    pair = make_self_signed(link.near, days=1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (
            ("p.pem", pair.certificate),
            ("p.key", pair.key),
            ("c.yaml", "prompt: {observation: []}\n"),
        ):
            (folder / file).write_text(text)
        command = [sys.executable, "-m", "training.sampler.server", "--model", str(tiny_folder())]
        command += ["--config", "c.yaml", "--host", link.near, "--port-file", "port"]
        command += ["--certificate", "p.pem", "--key", "p.key"]
        environment = os.environ | {"DESKHAND_POLICY_TOKEN": SECRET, "PYTHONPATH": str(tree)}
        process = subprocess.Popen(command, cwd=folder, env=environment)
        try:
            url = f"https://{link.near}:{_port(folder / 'port')}"
            _wait_and_revoke(url, pair.certificate)
            yield {"url": url, "certificate": pair.certificate} | _tokens()
        finally:
            process.terminate()
            process.wait(30)


def _tokens() -> dict[str, str]:
    own = host_token(SECRET, "evil", 2000)
    return {
        "own": own,
        "mate": host_token(SECRET, "mate", 2000),
        "revoked": host_token(SECRET, "gone", 1000),
        "forged": own.replace(b"evil".hex(), b"mate".hex()),
    }


def _port(file: Path) -> str:
    listens = "the policy server to listen"
    return wait_for(listens, lambda: file.exists() and file.read_text().strip(), patience_s=START_S) or ""


def _wait_and_revoke(url: str, certificate: str) -> None:
    trusting = ssl.create_default_context(cadata=certificate)
    headers = {"Authorization": f"Bearer {SECRET}"}
    with httpx.Client(base_url=url, verify=trusting, headers=headers, trust_env=False, timeout=30) as line:
        is_ready = lambda: line.get("/health").is_success  # noqa: E731
        wait_for("the policy server", is_ready, patience_s=START_S)
        line.post("/hosts/end", json={"hosts": {"gone": 1500}}).raise_for_status()
