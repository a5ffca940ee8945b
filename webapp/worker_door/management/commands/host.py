"""Run this joined host in this terminal: desk host and env worker; Ctrl-C stops them."""

import asyncio
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.lib.host_links.service_address import ServiceAddress
from webapp.lib.supervisor.before_start import AlreadyRunning, hold_lock
from webapp.lib.supervisor.logs import Terminal
from webapp.lib.supervisor.orphans import sweep
from webapp.lib.supervisor.process_specs import ProcessTable, default_slots
from webapp.lib.supervisor.supervisor import StartFailed, Supervisor


class Command(BaseCommand):
    help = "Start this joined host's desk host and env worker, show their logs, stop them with Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--slots", type=int, default=default_slots(), help="desktops in use at once")
        parser.add_argument("--unsafe-desktops", action="store_true", help="as of `manage.py up`")
        parser.add_argument("--quiet", action="store_true", help="logs only into files")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.JOINED is None:
            raise CommandError("this host has joined nothing; run `make join SERVER=... TOKEN=...` first")
        try:
            lock = hold_lock(settings.DATA_DIR)
            terminal = Terminal(show_children=not options["quiet"])
            sweep(settings.DATA_DIR)
            table = ProcessTable(
                repository=settings.BASE_DIR,
                data_dir=settings.DATA_DIR,
                host="",
                port=0,
                redis_url="",
                redis_port=0,
                redis_password=None,
                hosts_server=ServiceAddress("", ""),
                hosts_port=0,
                deskhost_socket=settings.DESKHOST_SOCKET,
                deskhost_state_dir=settings.DESKHOST_STATE_DIR,
                slots=options["slots"],
                env_workers=1,
                without=frozenset(),
                unsafe_desktops=options["unsafe_desktops"],
            )
            worker = table.spec(
                "env1",
                *(sys.executable, "-m", "workers.joined_worker", "--slots", str(options["slots"])),
                ready_line=r"begins with \d+ slots",
                grace_s=8,
            )
            supervisor = Supervisor(settings.DATA_DIR, settings.LOG_DIR, terminal)
            asyncio.run(supervisor.run([lambda: supervisor.start([table.deskhost(), worker])]))
        except (AlreadyRunning, StartFailed) as error:
            raise CommandError(str(error)) from error
        os.close(lock)
