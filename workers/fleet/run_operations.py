"""Carries out what operators asked of this machine's desktops, and records the outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import DatabaseError

from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient
from workers.door.https_door import DoorRefused
from workers.fleet import reporting
from workers.fleet.reporting import Operation, Verb

log = logging.getLogger(__name__)

Act = Callable[[DeskHostClient, Operation], str]

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
    for operation in reporting.take_operations(host=host):
        try:
            _carry_out(client, operation)
        except (DatabaseError, DoorRefused) as error:
            log.warning("%s %s: not recorded: %s", operation.verb, operation.target, error)


def _carry_out(client: DeskHostClient, operation: Operation) -> None:
    # Asked before it is done: a trajectory that is run again may soon be on the same desktop.
    running = reporting.live_on_desktop(operation.target)
    try:
        outcome = VERBS[operation.verb](client, operation)
    except EnvError as error:
        reporting.end_operation(operation, str(error), is_done=False)
        return
    # The agent holds connections of its own to the desktop and would go on acting there.
    word = WORDS[Verb(operation.verb)]
    reason = f": {operation.reason}" if operation.reason else ""
    why = f"desktop {operation.target} was {word} by {operation.asked_by_name}{reason}"
    for trajectory_id in running:
        if reporting.take_away(trajectory_id=trajectory_id, error=why):
            outcome += f"; trajectory {trajectory_id} errored and queued again"
    reporting.end_operation(operation, outcome, is_done=True)
    log.info("%s %s: %s", operation.verb, operation.target, outcome)
