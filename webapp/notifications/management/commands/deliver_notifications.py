"""`manage.py deliver_notifications ID`: what the dispatcher starts while messages are due."""

from collections.abc import Callable

from webapp.dispatcher.child_command import ChildCommand
from webapp.notifications.outbox import claim_next
from webapp.notifications.send import send


class Command(ChildCommand):
    help = "Send all notifications that are due, of which ID is one. Started by the dispatcher."

    def work(self, pk: int, is_stopping: Callable[[], bool]) -> None:
        failing: set[int] = set()
        while not is_stopping() and (delivery := claim_next(without_rules=failing)) is not None:
            if not send(delivery):
                failing.add(delivery.rule_id)  # its other messages wait for the next process
