"""Ask one model for attacks: the dispatcher starts this in a process of its own."""

from typing import Any

from django.core.management.base import BaseCommand

from webapp.attacks.model_attacks import run_model_attack


class Command(BaseCommand):
    help = "Ask a language model for attacks on a task, and queue what it wrote."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        run_model_attack(options["id"])
