"""Carries out what operators asked of this machine's desktops, and records the outcome."""

import logging
from collections.abc import Callable

from django.db import DatabaseError

from webapp.worker_door import host_mirror as calls
from webapp.worker_door.host_mirror import AskedOperation, Verb
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.reports.contract import CallRefused
from workers.reports.current import reports

log = logging.getLogger(__name__)

Act = Callable[[DeskHostClient, AskedOperation], str]

VERBS: dict[str, Act] = {
    Verb.RESTART: lambda client, asked: client.restart(asked.target, f"restarted by {asked.asked_by_name}"),
    Verb.QUARANTINE: lambda client, asked: client.quarantine(
        asked.target, f"{asked.reason} ({asked.asked_by_name})"
    ),
    Verb.RELEASE: lambda client, asked: client.release_desktop(asked.target),
    Verb.KILL: lambda client, asked: client.kill(asked.target),
}
WORDS = {
    Verb.RESTART: "restarted",
    Verb.QUARANTINE: "quarantined",
    Verb.RELEASE: "released",
    Verb.KILL: "ended",
}


def carry_out(client: DeskHostClient, host: str) -> None:
    """Everything that waits for this host; what cannot be recorded of one keeps none of the others."""
    for operation in reports().request(calls.take_operations, host):
        try:
            _carry_out(client, operation)
        except (DatabaseError, CallRefused) as error:
            log.warning("%s %s: not recorded: %s", operation.verb, operation.target, error)


def _carry_out(client: DeskHostClient, operation: AskedOperation) -> None:
    # Asked before it is done: a trajectory that is run again may soon be on the same desktop.
    running = reports().request(calls.live_on_desktop, operation.target)
    try:
        outcome = VERBS[operation.verb](client, operation)
    except EnvError as error:
        reports().request(calls.end_operation, operation.pk, str(error), is_done=False)
        return
    # The agent holds connections of its own to the desktop and would go on acting there.
    word = WORDS[Verb(operation.verb)]
    reason = f": {operation.reason}" if operation.reason else ""
    why = f"desktop {operation.target} was {word} by {operation.asked_by_name}{reason}"
    for trajectory_id in running:
        if reports().request(calls.take_away, trajectory_id, why):
            outcome += f"; trajectory {trajectory_id} errored and queued again"
    reports().request(calls.end_operation, operation.pk, outcome, is_done=True)
    log.info("%s %s: %s", operation.verb, operation.target, outcome)
