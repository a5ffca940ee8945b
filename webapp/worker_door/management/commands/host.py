"""Run this joined host in this terminal: desk host and env worker, gpu workers; Ctrl-C stops them."""

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
from webapp.lib.supervisor.supervised_process import ProcessSpec
from webapp.lib.supervisor.supervisor import StartFailed, Supervisor

BEGINS = r"begins with \d+ slots"
LEAVING_S = 8.0
"""For the last reports."""


class Command(BaseCommand):
    help = "Start what this joined host is used for, show its logs, stop it with Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--slots", type=int, default=default_slots(), help="desktops in use at once")
        parser.add_argument("--gpu-workers", type=int, default=1, help="experiments at once")
        parser.add_argument("--unsafe-desktops", action="store_true", help="as of `manage.py up`")
        parser.add_argument("--quiet", action="store_true", help="logs only into files")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.JOINED is None:
            raise CommandError("this host has joined nothing; run `make join SERVER=...` first")
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
            supervisor = Supervisor(settings.DATA_DIR, settings.LOG_DIR, terminal)
            specs = joined_specs(table, settings.JOINED.roles, options["slots"], options["gpu_workers"])
            asyncio.run(supervisor.run([lambda: supervisor.start(specs)]))
        except (AlreadyRunning, StartFailed) as error:
            raise CommandError(str(error)) from error
        os.close(lock)


def joined_specs(
    table: ProcessTable, roles: tuple[str, ...], num_slots: int, num_gpu_workers: int
) -> list[ProcessSpec]:
    """What a host with these roles runs."""
    specs = []
    if "env" in roles:
        command = [sys.executable, "-m", "workers.joined.env_worker", "--slots", str(num_slots)]
        worker = table.spec("env1", *command, ready_line=BEGINS, grace_s=LEAVING_S)
        specs += [table.deskhost(), worker]
    for number in range(1, num_gpu_workers + 1) if "gpu" in roles else ():
        command = [sys.executable, "-m", "workers.joined.gpu_worker", "--number", str(number)]
        # Longer than the worker gives its trainer to write a checkpoint.
        grace_s = settings.STOP_GRACE_S + LEAVING_S
        specs.append(table.spec(f"gpu{number}", *command, ready_line=BEGINS, grace_s=grace_s))
    return specs
