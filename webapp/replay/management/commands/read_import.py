"""Check or store one import: the dispatcher starts this in a process of its own."""

import resource
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from webapp.replay.imports.run import run_import

MAX_MEMORY = 6 * 2**30
"""A small file may unpack to any size; then it fails, and nothing else of the machine does."""


class Command(BaseCommand):
    help = "Read the file of an import of replay entries; ends at a batch when it is told to stop."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
        stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        run_import(options["id"], stopping.is_set)
