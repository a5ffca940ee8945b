"""What an attack gets: a stranger's way to the port of hosts, one identity, and what the others own."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

BLANK = ([], {}, None, "", False)
TIMEOUT_S = 30
Table = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A program behind its own network holds nothing else."""

    address: str
    port: int
    authority: str
    """PEM of the installation's own."""
    version: str
    name: str
    secret: str
    """Of the host that is hostile."""
    own: Table
    """Call -> arguments that name what it owns."""
    victims: dict[str, Table]
    """The same of a host of its team, of one of another team, and of the server itself."""
    tokens: dict[str, str] = field(default_factory=dict)
    """Join tokens: used, old, env."""
    names: dict[str, str] = field(default_factory=dict)
    """Of the victims."""
    policy: dict[str, Any] = field(default_factory=dict)
    """What there is beside the installation: see `extras.py`."""

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        """Status and body of the answer. Raises OSError when the connection is cut off."""
        context = ssl.create_default_context(cadata=self.authority)
        line = http.client.HTTPSConnection(self.address, self.port, context=context, timeout=TIMEOUT_S)
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()

    def post(self, path: str, body: bytes, *, as_host: str = "", secret: str = "") -> tuple[int, Any]:
        """As a host; the hostile one unless another is named."""
        headers = {
            "Authorization": f"Bearer {as_host or self.name}:{secret or self.secret}",
            "X-Deskhand-Version": self.version,
            "X-Deskhand-Clock": "1",
            "Content-Type": "application/json",
        }
        status, answer = self.send("POST", path, body, **headers)
        try:
            return status, json.loads(answer)
        except ValueError:
            return status, base64.b64encode(answer).decode()

    def ask(self, call: str, arguments: dict[str, Any], **who: str) -> bool:
        """Whether the server carried out the request, or answered with data."""
        status, answer = self.post(f"/hosts/ask/{call}/", json.dumps(arguments).encode(), **who)
        return status == 200 and (answer not in BLANK or call in SAY_NOTHING)

    def report(self, call: str, arguments: dict[str, Any], **who: str) -> bool:
        """Whether the server recorded it."""
        report = {"number": 1, "name": call, "body": json.dumps(arguments)}
        batch = {"stream": secrets.token_hex(16), "reports": [report]}
        status, answer = self.post("/hosts/reports/", json.dumps(batch).encode() + b"\n", **who)
        return bool(status == 200 and not answer["refused"])


SAY_NOTHING = {"record_gpus", "record_host", "record_problem", "hand_over_mirror", "stop_worker"}
SAY_NOTHING |= {"end_operation", "record_copy", "forget_copy", "finish_export", "fail_export"}
SAY_NOTHING |= {
    "confirm_removal",
    "record_export_copy",
    "report_export",
    "record_gpu_sample",
    "start_attempt",
}
SAY_NOTHING |= {
    "record_gpus_held",
    "leave",
    "go_on_from_older",
    "sample_host",
    "record_pinned",
    "beat_worker",
}
"""Requests whose answer is empty when they were done."""
Act = Callable[[Scene, str], bool]
"""The scene and one of its victims -> whether the attack got what it wanted."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One thing that a hostile host tries."""

    name: str
    kind: str
    defence: str
    act: Act
    roles: tuple[str, ...] = ("env", "gpu")
    """Of the hostile host."""
    stage: str = ""
    """What is arranged before: see `stages.py`."""
    each_victim: bool = False
    """Tried on each of them."""


ATTACKS: dict[str, Attack] = {}


def attack(name: str, *, kind: str, defence: str, **values: Any) -> Callable[[Act], Act]:
    """Adds the function to the list."""

    def add(act: Act) -> Act:
        assert name not in ATTACKS, name
        ATTACKS[name] = Attack(name=name, kind=kind, defence=defence, act=act, **values)
        return act

    return add
