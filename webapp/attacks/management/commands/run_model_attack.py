"""Ask one model for attacks: the dispatcher starts this in a process of its own."""

from collections.abc import Callable

from webapp.attacks.model_attacks import run_model_attack
from webapp.dispatcher.child_command import ChildCommand


class Command(ChildCommand):
    help = "Ask a language model for attacks on a task, and queue what it wrote."

    def work(self, pk: int, is_stopping: Callable[[], bool]) -> None:
        run_model_attack(pk)
