"""Plain functions that make rows of the fleet; everything unnamed is unremarkable."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from webapp.fleet.models import Desktop, Host, JoinedHost, Worker
from webapp.fleet.services.history import record_sample
from webapp.fleet.services.workers import beat_worker


def make_host(name: str = "h1", **values: Any) -> Host:
    now = timezone.now()
    usual = {
        "mirrored_by": f"env1@{name}",
        "mirrored_at": now,
        "heartbeat_at": now,
        "started_at": now - timedelta(hours=1),
        "max_desktops": 16,
        "cores": 4,
        "memory_mb": 8192,
        "memory_used_mb": 2048,
        "disk_mb": 100_000,
        "disk_free_mb": 60_000,
    }
    return Host.objects.create(name=name, **usual | values)


def make_sample(host: Host, at: datetime, **values: float) -> None:
    """One look at a host, which had nothing to do but what `values` say."""
    counts = dict.fromkeys(("ready", "leased", "booting", "dead", "quarantined", "leaks"), 0)
    record_sample(host, at, **counts | {"reset_p50_s": 0.0, "reset_p99_s": 0.0} | values)


def make_joined_host(
    name: str = "far", secret: str = "s", *, roles: Sequence[str] = ("env", "gpu")
) -> JoinedHost:
    now = timezone.now()
    digest = hashlib.sha256(secret.encode()).hexdigest()
    return JoinedHost.objects.create(
        host=make_host(name),
        digest=digest,
        version="0.1.0+1a2b3c4d",
        heard_at=now,
        joined_at=now,
        invited_by_name="admin",
        roles=list(roles),
    )


def make_worker(name: str = "env1@h1", *, host: str = "h1", queue: str = "env", slots: int = 4) -> Worker:
    return beat_worker(name=name, queue=queue, host=host, pid=1, slots=slots, version="0.1.0")


def make_desktop(name: str = "d1", **values: Any) -> Desktop:
    now = timezone.now()
    usual = {
        "host": "h1",
        "provider": "x11",
        "phase": "leased",
        "width": 512,
        "height": 384,
        "holder": "env1@h1/t0" if values.get("phase", "leased") == "leased" else "",
        "born_at": now - timedelta(minutes=5),
        "mirrored_at": now,
    }
    return Desktop.objects.create(name=name, **usual | values)
