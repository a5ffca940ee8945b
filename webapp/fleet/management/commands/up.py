"""Start the whole installation in this terminal and stop it with Ctrl-C."""

import asyncio
import json
import os
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from training.outgoing.secret_store import stored_secret
from webapp.lib.newer_database import NewerDatabase, applied_migrations, require_known
from webapp.lib.static_files.npm_assets import AssetsMissing
from webapp.lib.supervisor.before_start import (
    AlreadyRunning,
    collect_assets,
    hold_lock,
    import_task_sets,
    write_hosts_certificate,
)
from webapp.lib.supervisor.logs import Terminal
from webapp.lib.supervisor.orphans import sweep
from webapp.lib.supervisor.ports import PortTaken, require_free
from webapp.lib.supervisor.process_specs import OPTIONAL, ProcessTable, default_slots
from webapp.lib.supervisor.queue_probe import queue_executes
from webapp.lib.supervisor.redis_server import RedisMissing
from webapp.lib.supervisor.supervisor import StartFailed, Supervisor

DEFAULT_PORT = 8700
PING_TIMEOUT_S = 30
USER_ERRORS = (AlreadyRunning, AssetsMissing, PortTaken, RedisMissing, StartFailed)


class Command(BaseCommand):
    help = "Start Redis, web, desk host, workers and dispatcher, show their logs, stop them with Ctrl-C."
    requires_system_checks = ()  # they load every view; the web process does that anyway

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address the web pages are served on")
        parser.add_argument(
            "--port",
            type=int,
            default=DEFAULT_PORT,
            help="port of the web pages; a second installation also needs its own DESKHAND_REDIS_PORT",
        )
        parser.add_argument("--slots", type=int, default=default_slots(), help="desktops in use at once")
        parser.add_argument("--env-workers", type=int, default=2, help="processes that share the slots")
        parser.add_argument("--gpu-workers", type=int, default=1, help="experiments that may run at once")
        parser.add_argument(
            "--without", nargs="*", choices=OPTIONAL, default=[], help="processes to leave out"
        )
        parser.add_argument(
            "--unsafe-desktops",
            action="store_true",
            help="desktops also where they cannot be isolated (docs/running.md)",
        )
        parser.add_argument("--prepare-only", action="store_true", help="prepare the database and exit")
        parser.add_argument("--quiet", action="store_true", help="logs only into files")

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        if options["prepare_only"]:
            self.prepare(Terminal())
            self.stdout.write("\n".join(login_rows()))
            return
        try:
            lock = hold_lock(settings.DATA_DIR)
            ready_file().unlink(missing_ok=True)  # of a supervisor that was killed
            terminal = Terminal(show_children=not options["quiet"])
            sweep(settings.DATA_DIR)  # ports of a supervisor that was killed become free
            table = make_process_table(options)
            self.prepare(terminal)
            supervisor = Supervisor(settings.DATA_DIR, settings.LOG_DIR, terminal)
            ready = Readiness(table, supervisor, started)
            steps = (
                lambda: supervisor.start(table.redis_stage()),
                lambda: supervisor.start(table.worker_stage()),
                ready.ask_queues,
                lambda: supervisor.start(table.dispatcher_stage()),
                ready.announce,
            )
            asyncio.run(supervisor.run(steps))
        except USER_ERRORS as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:  # before the supervisor has taken over the signals
            raise CommandError("interrupted", returncode=130) from error
        ready_file().unlink(missing_ok=True)
        terminal.write("up", "stopped")
        os.close(lock)

    def prepare(self, terminal: Terminal) -> None:
        """Tables, assets, first login, task sets; each quick when there is nothing to do."""
        terminal.write("up", "preparing the database")
        try:
            require_known(applied_migrations(), "the database")
        except NewerDatabase as error:
            raise CommandError(str(error)) from error
        call_command("migrate", interactive=False, verbosity=0)
        if collect_assets():
            terminal.write("up", "collected the front-end files")
        call_command("ensure_admin", verbosity=0)
        for name in import_task_sets():
            terminal.write("up", f"task set {name} is there")
        close_databases()


class Readiness:
    """Checks both queues once everything runs, then prints where to go."""

    def __init__(self, table: ProcessTable, supervisor: Supervisor, started: float) -> None:
        self.table = table
        self.supervisor = supervisor
        self.started = started
        self.executes: dict[str, bool] = {}

    async def ask_queues(self) -> None:
        """Have both queues execute a ping."""
        queues = [queue for queue in ("gpu", "env") if queue not in self.table.without]
        pings = (queue_executes(self.table.redis_url, queue, PING_TIMEOUT_S) for queue in queues)
        self.executes = dict(zip(queues, await asyncio.gather(*pings), strict=True))

    async def announce(self) -> None:
        """Print the closing table and leave the same facts in a file."""
        seconds = time.monotonic() - self.started
        for line in summary(self.table, self.executes, seconds):
            self.supervisor.say(line)
        content = {"url": url(self.table), "pid": os.getpid(), "seconds": seconds, "queues": self.executes}
        draft = ready_file().with_suffix(".new")
        draft.write_text(json.dumps(content))
        draft.replace(ready_file())


def close_databases() -> None:
    """Close connections and PostgreSQL's pool with its threads: processes are forked from here on."""
    connections.close_all()
    for connection in connections.all():
        if connection.vendor == "postgresql":
            cast(Any, connection).close_pool()


def make_process_table(options: dict[str, Any]) -> ProcessTable:
    """The table's choices from the command line and the settings. Raises PortTaken."""
    own_redis = not os.environ.get("REDIS_URL")
    if not settings.HOSTS_SERVER.is_local:
        require_free(settings.HOSTS_PORT, "the variable DESKHAND_HOSTS_PORT", settings.HOSTS_SERVER.listen)
        write_hosts_certificate(settings.DATA_DIR, settings.HOSTS_SERVER)
    require_free(options["port"], "--port (make up ARGS='--port 8800')", options["host"])
    if own_redis:
        require_free(settings.REDIS_PORT, "the variable DESKHAND_REDIS_PORT")
    return ProcessTable(
        repository=settings.BASE_DIR,
        data_dir=settings.DATA_DIR,
        host=options["host"],
        port=options["port"],
        redis_url=settings.REDIS_URL,
        redis_port=settings.REDIS_PORT,
        redis_password=stored_secret(settings.SECRETS_DIR / "redis_password") if own_redis else None,
        hosts_server=settings.HOSTS_SERVER,
        hosts_port=settings.HOSTS_PORT,
        deskhost_socket=settings.DESKHOST_SOCKET,
        deskhost_state_dir=settings.DESKHOST_STATE_DIR,
        slots=options["slots"],
        env_workers=options["env_workers"],
        gpu_workers=options["gpu_workers"],
        without=frozenset(options["without"]),
        unsafe_desktops=options["unsafe_desktops"],
    )


def url(table: ProcessTable) -> str:
    return f"http://{'localhost' if table.host in {'127.0.0.1', '0.0.0.0'} else table.host}:{table.port}/"


def ready_file() -> Path:
    """Exists while everything is up; says where."""
    return Path(settings.RUN_DIR) / "ready.json"


def login_rows() -> list[str]:
    """The first login, as long as its file is there."""
    login = Path(settings.DATA_DIR) / "first-login.txt"
    if not login.exists():
        return []
    _, username, _, password = login.read_text().split()
    return [
        f"user {username}, password {password}",
        f"(from {login}: delete it once you have changed the password)",
    ]


def summary(table: ProcessTable, executes: dict[str, bool], seconds: float) -> list[str]:
    """The closing table, one row per line."""
    rows = [("open", url(table)), *zip(("sign in", ""), login_rows(), strict=False)]
    for queue, good in executes.items():
        rows.append((f"{queue} queue", "executes jobs" if good else "BUSY OR STUCK: a ping was not executed"))
    rows.append(("desktops", f"{table.slots} slots in {table.env_workers} env workers"))
    if table.unsafe_desktops:
        rows.append(("", "UNSAFE: desktops may not be isolated from this machine (--unsafe-desktops)"))
    rows.append(("data", f"{table.data_dir} (logs in {settings.LOG_DIR.name}/)"))
    rows.append(("stop", "Ctrl-C"))
    width = max(len(text) for _, text in rows) + 14
    rule = "-" * width
    return [
        "",
        rule,
        f" Deskhand is ready after {seconds:.1f} s",
        *(f" {k:<11} {v}" for k, v in rows),
        rule,
        "",
    ]
