"""What the dispatcher starts in a process of its own: one row of long work."""

import resource
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from webapp.dispatcher.child_work import TRY_AGAIN
from webapp.dispatcher.work_kinds import kinds


class Command(BaseCommand):
    help = "Do one row of long work; SIGTERM ends it where nothing is lost."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("kind", choices=sorted(kinds))
        parser.add_argument("id", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        kind = kinds[options["kind"]]
        if kind.max_memory:
            resource.setrlimit(resource.RLIMIT_DATA, (kind.max_memory, kind.max_memory))
        stopping = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        try:
            kind.run(options["id"], stopping.is_set)
        except (OperationalError, InterfaceError) as error:
            raise CommandError(f"the database: {error}", returncode=TRY_AGAIN) from error
        finally:
            signal.signal(signal.SIGTERM, before)
