"""The command that a child process of the dispatcher runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

TRY_AGAIN = 75
"""Exit code where the database was away or locked (EX_TEMPFAIL of sysexits.h)."""


class ChildCommand(BaseCommand):
    """`manage.py COMMAND ID`; SIGTERM asks it to stop where nothing is lost."""

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        try:
            self.work(options["id"], stopping.is_set)
        except (OperationalError, InterfaceError) as error:
            raise CommandError(f"the database: {error}", returncode=TRY_AGAIN) from error
        finally:
            signal.signal(signal.SIGTERM, before)

    def work(self, pk: int, is_stopping: Callable[[], bool]) -> None:
        """Do what the row asks for."""
        raise NotImplementedError
