"""A machine that answers a host instead of the server: `manage.py join` runs as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.chaos.hostile_hosts.scene import Scene, attack
from testing.servers.answering import Answer, Request, answering

TOKEN = "6a6f696e"
"""Secret of the token that the person types."""


@contextmanager
def machine_in_between(
    scene: Scene, authority: str, welcome: dict[str, Any]
) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and what was sent to it."""
    heard: list[str] = []

    def answer(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(authority.encode())
        heard.append(request.body.decode())
        return Answer(json.dumps(welcome).encode())

    with tempfile.NamedTemporaryFile(suffix=".pem") as pair:
        Path(pair.name).write_text(scene.policy["pair"])
        with answering(answer, pair=Path(pair.name)) as url:
            yield url, heard


def join(scene: Scene, url: str, fingerprint: str, folder: str) -> None:
    """A person joins there, by a token that names this authority."""
    names = ("PATH", "HOME", "LANG")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    subprocess.run(
        [sys.executable, "manage.py", "join", "--server", url],
        cwd=scene.policy["tree"],
        env=environment | {"DESKHAND_DATA_DIR": folder, "DESKHAND_HOST_NAME": "honest"},
        input=f"{TOKEN}.{fingerprint}\n",
        text=True,
        check=False,
        capture_output=True,
    )


def _hears_the_token(scene: Scene, authority: str) -> bool:
    with machine_in_between(scene, authority, {}) as (url, heard), tempfile.TemporaryDirectory() as folder:
        join(scene, url, scene.policy["fingerprint"], folder)
        return any(TOKEN in one for one in heard)


@attack("answer with another authority", kind="in between", defence="one certificate", stage="in between")
def another_authority(scene: Scene, _: str) -> bool:
    return _hears_the_token(scene, scene.policy["own_certificate"])


@attack(
    "a second certificate behind the server's",
    kind="in between",
    defence="one certificate, re-encoded",
    stage="in between",
)
def second_certificate(scene: Scene, _: str) -> bool:
    return _hears_the_token(scene, scene.authority + scene.policy["own_certificate"])


@attack(
    "words around the server's certificate",
    kind="in between",
    defence="one certificate, re-encoded",
    stage="in between",
)
def words_around(scene: Scene, _: str) -> bool:
    return _hears_the_token(scene, f"{scene.authority}\nwords\n{scene.policy['own_certificate']}")


for _variable in ("PYTHONPATH", "LD_PRELOAD", "DESKHAND_DATA_DIR"):

    @attack(f"send the host {_variable}", kind="in between", defence="listed settings", stage="in between")
    def set_a_variable(scene: Scene, _: str, variable: str = _variable) -> bool:
        welcome = {"name": "honest", "secret": "s", "environment": {variable: "/evil"}}
        own = scene.policy["own_certificate"]
        with (
            machine_in_between(scene, own, welcome) as (url, _heard),
            tempfile.TemporaryDirectory() as folder,
        ):
            join(scene, url, scene.policy["own_fingerprint"], folder)
            kept = Path(folder) / "host.json"
            return kept.exists() and variable in kept.read_text()
