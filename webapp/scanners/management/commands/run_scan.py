"""Run one scan: the dispatcher starts this in a process of its own."""

from collections.abc import Callable

from webapp.dispatcher.child_command import ChildCommand
from webapp.scanners.run import run_scan


class Command(ChildCommand):
    help = "Read the transcripts of a scan; ends at a batch when it is told to stop."

    def work(self, pk: int, is_stopping: Callable[[], bool]) -> None:
        run_scan(pk, is_stopping)
