"""What is arranged in the installation's database before an attack, and what is looked at afterwards."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from benchmarks.chaos.hostile_hosts.scene import Attack, Scene
from testing.factories import make_team
from testing.owned_world import SECRET, Owner, call_table, make_owner, rows_of
from webapp.fleet.models import JoinedHost, JoinToken
from webapp.trajectories.models import Trajectory
from webapp.worker_door.joined_hosts.contract_version import version

_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Port:
    """Where hosts reach the installation."""

    address: str
    port: int
    authority: str


@dataclass
class World:
    """One attack's owners of rows."""

    evil: Owner
    victims: dict[str, Owner]
    before: dict[str, list[Any]]

    @classmethod
    def arranged(cls, found: Attack) -> World:
        number, team = next(_numbers), make_team()
        evil = make_owner(f"evil{number}", team, roles=found.roles)
        JoinedHost.objects.filter(host__name=evil.name).update(team=team)
        victims = {
            "mate": make_owner(f"mate{number}", team),
            "foreign": make_owner(f"foreign{number}", make_team()),
            "server": make_owner(f"server{number}", team, is_joined=False),
        }
        row = JoinedHost.objects.filter(host__name=evil.name)
        if found.stage == "works for another team":
            row.update(team=make_team())
        elif found.stage == "revoked":
            row.update(revoked_at=timezone.now())
        elif found.stage == "has finished":
            Trajectory.objects.filter(pk=evil.running.pk).update(
                status="terminated", score=0.5, reward=0.5, ended_at=timezone.now()
            )
        return cls(evil, victims, {name: _rows(owner) for name, owner in victims.items()})

    def scene(self, port: Port, policy: dict[str, Any]) -> Scene:
        return Scene(
            address=port.address,
            port=port.port,
            authority=port.authority,
            version=version(),
            name=self.evil.name,
            secret=SECRET,
            own=call_table(self.evil),
            victims={name: call_table(owner) for name, owner in self.victims.items()},
            tokens={name: _token(name) for name in ("used", "old", "env")},
            names={name: owner.name for name, owner in self.victims.items()},
            policy=policy,
        )

    def changed(self) -> list[str]:
        """Victims whose rows are not what they were, and what the hostile host's own must not be."""
        found = [name for name, owner in self.victims.items() if _rows(owner) != self.before[name]]
        self.evil.running.refresh_from_db()
        if abs(self.evil.running.reward or 0) > 10:
            found.append("its own reward")
        return found


def _rows(owner: Owner) -> list[dict[str, Any]]:
    """Without when its waiting trajectories were sent: that is what a free slot of anyone's does."""
    return [{key: value for key, value in row.items() if key != "sent_at"} for row in rows_of(owner)]


def _token(kind: str) -> str:
    secret, now = secrets.token_hex(24), timezone.now()
    JoinToken.objects.create(
        digest=hashlib.sha256(secret.encode()).hexdigest(),
        made_by_name="admin",
        expires_at=now + timedelta(hours=-1 if kind == "old" else 1),
        used_at=now if kind == "used" else None,
        num_hosts=int(kind == "used"),
        roles=["env"],
    )
    return secret
