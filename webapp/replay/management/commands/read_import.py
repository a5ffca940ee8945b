"""Check or store one import: the dispatcher starts this in a process of its own."""

import resource
from collections.abc import Callable

from webapp.dispatcher.child_command import ChildCommand
from webapp.replay.imports.run import run_import

MAX_MEMORY = 6 * 2**30
"""A small file may unpack to any size; then it fails, and nothing else of the machine does."""


class Command(ChildCommand):
    help = "Read the file of an import of replay entries; ends at a batch when it is told to stop."

    def work(self, pk: int, is_stopping: Callable[[], bool]) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
        run_import(pk, is_stopping)
