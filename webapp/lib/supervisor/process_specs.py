"""The table of processes of one installation."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from webapp.lib.host_links.service_address import ServiceAddress
from webapp.lib.supervisor.readiness_probes import http_ok, port_accepts, redis_answers, socket_accepts
from webapp.lib.supervisor.redis_server import redis_command
from webapp.lib.supervisor.supervised_process import ProcessSpec

SLOTS_PER_CORE = 4
"""A trajectory mostly waits for its desktop and for the policy server."""
MOST_SLOTS = 32
LEAST_DESKTOPS = 16
"""The desk host may always hold this many: tests and people lease desktops beside the env workers."""
OPTIONAL = ("web", "deskhost", "gpu", "env", "dispatcher")
"""Processes that may be left out; "env" means all env workers."""
CELERY_READY = r"\bready\.$"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTable:
    """The choices that the table depends on."""

    repository: Path
    data_dir: Path
    host: str
    port: int
    redis_url: str
    redis_port: int
    redis_password: str | None
    """None: Redis is not ours to run."""
    hosts_server: ServiceAddress
    """Where other hosts join; loopback = nowhere."""
    hosts_port: int
    deskhost_socket: Path
    deskhost_state_dir: Path
    slots: int
    """Desktops that may be in use at once, over all env workers."""
    env_workers: int
    gpu_workers: int = 1
    """Experiments that may run at once; they share the host's GPUs."""
    without: frozenset[str]
    """Names of processes to leave out: web, deskhost, gpu, env, dispatcher."""
    unsafe_desktops: bool = False
    """The desk host stays root, or makes desktops without a sandbox, rather than none."""

    def environment(self) -> dict[str, str]:
        """What every process inherits: the same installation, whatever the folder it is started from."""
        return {
            **os.environ,
            "DESKHAND_DATA_DIR": str(self.data_dir),
            "DESKHAND_DESKHOST_SOCKET": str(self.deskhost_socket),
            "REDIS_URL": self.redis_url,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "PYTHONUNBUFFERED": "1",
            # Celery's advice against root at every start; `manage.py doctor` gives it once.
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser",
        }

    def redis_stage(self) -> list[ProcessSpec]:
        """What everything else needs first; empty when Redis is not ours to run."""
        return [self.redis()] if self.redis_password else []

    def worker_stage(self) -> list[ProcessSpec]:
        """All that may start side by side."""
        specs = [self.web(), self.deskhost(), *self.gpu_worker_specs(), *self.env_worker_specs()]
        return self.kept(specs if self.hosts_server.is_local else [*specs, self.hosts()])

    def dispatcher_stage(self) -> list[ProcessSpec]:
        """Last: it hands out waiting work, and a busy worker could not answer whether it executes."""
        return self.kept([self.dispatcher()])

    def kept(self, specs: list[ProcessSpec]) -> list[ProcessSpec]:
        return [spec for spec in specs if spec.name.rstrip("0123456789") not in self.without]

    def spec(self, name: str, *argv: str, **options: object) -> ProcessSpec:
        return ProcessSpec(name=name, argv=list(argv), env=self.environment(), cwd=self.repository, **options)  # type: ignore[arg-type]

    def redis(self) -> ProcessSpec:
        assert self.redis_password
        argv = redis_command(self.data_dir / "redis", self.redis_port, self.redis_password)
        return self.spec(
            "redis", *argv, probe=redis_answers(self.redis_port, self.redis_password), stop_wave=2
        )

    def web(self) -> ProcessSpec:
        argv = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--host", self.host]
        argv += ["--port", str(self.port), "--lifespan", "off", "--no-access-log"]
        # What is large here is compressed already (screens); the rest is small.
        argv += ["--timeout-graceful-shutdown", "2", "--ws-per-message-deflate", "false"]
        if (
            not settings.BEHIND_HTTPS
        ):  # no proxy is declared: no one's word counts for where a request comes from
            argv.append("--no-proxy-headers")
        probe_host = "127.0.0.1" if self.host == "0.0.0.0" else self.host
        return self.spec("web", *argv, probe=http_ok(f"http://{probe_host}:{self.port}/healthz"), grace_s=5)

    def hosts(self) -> ProcessSpec:
        """The worker door over TLS, for hosts that join; `before_start` has written its certificate."""
        listen, pem = self.hosts_server.listen, hosts_certificate(self.data_dir)
        argv = [sys.executable, "-m", "uvicorn", "webapp.hosts_asgi:application", "--host", listen]
        argv += ["--port", str(self.hosts_port), "--lifespan", "off", "--no-access-log", "--no-proxy-headers"]
        argv += ["--ssl-certfile", str(pem), "--ssl-keyfile", str(pem), "--timeout-graceful-shutdown", "2"]
        probe_host = "127.0.0.1" if listen == "0.0.0.0" else listen
        return self.spec("hosts", *argv, probe=port_accepts(probe_host, self.hosts_port), grace_s=5)

    def deskhost(self) -> ProcessSpec:
        argv = [sys.executable, "-m", "workers.desktops.host", "--state-dir", str(self.deskhost_state_dir)]
        argv += [
            "--socket",
            str(self.deskhost_socket),
            "--max-desktops",
            str(max(self.slots, LEAST_DESKTOPS)),
            *(["--unsafe-desktops"] if self.unsafe_desktops else []),
        ]
        return self.spec("deskhost", *argv, probe=socket_accepts(self.deskhost_socket), stop_wave=1)

    def celery(self, name: str, queue: str, *pool: str, grace_s: float) -> ProcessSpec:
        argv = [sys.executable, "-m", "celery", "-q", "-A", "workers.app", "worker"]
        # Gossip and mingle are for workers that know each other; mingle costs a second at every start. Our
        # heartbeats are rows of the database: nothing listens to Celery's.
        argv += ["-Q", queue, "-n", f"{name}@%h"]
        argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return self.spec(name, *argv, "--loglevel", "INFO", *pool, ready_line=CELERY_READY, grace_s=grace_s)

    def gpu_worker_specs(self) -> list[ProcessSpec]:
        several = [f"gpu{number}" for number in range(1, self.gpu_workers + 1)]
        names = several if self.gpu_workers > 1 else ["gpu"]
        # Longer than the worker gives its trainer to write a checkpoint.
        return [self.celery(name, "gpu", "--pool=solo", grace_s=settings.STOP_GRACE_S + 2) for name in names]

    def env_worker_specs(self) -> list[ProcessSpec]:
        shares = [len(range(index, self.slots, self.env_workers)) for index in range(self.env_workers)]
        return [
            self.celery(f"env{index}", "env", "--pool=threads", f"--concurrency={share}", grace_s=5)
            for index, share in enumerate(shares, start=1)
            if share
        ]

    def dispatcher(self) -> ProcessSpec:
        argv = [sys.executable, str(self.repository / "manage.py"), "dispatch"]
        return self.spec("dispatcher", *argv, probe=at_once)


def hosts_certificate(data_dir: Path) -> Path:
    """Certificate and key of the server where hosts join, in one PEM file."""
    return data_dir / "run" / "hosts.pem"


async def at_once() -> bool:
    """The dispatcher serves no requests: it is ready when it runs."""
    return True


def default_slots() -> int:
    return min(MOST_SLOTS, SLOTS_PER_CORE * (os.cpu_count() or 1))
