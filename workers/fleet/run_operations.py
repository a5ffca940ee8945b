"""Carries out what operators asked of this machine's desktops, and says what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from webapp.fleet import operations as rows
from webapp.fleet.models import Operation, OperationStatus, Verb
from webapp.trajectories.lifecycle import desktop_taken
from workers.desktops.contract import EnvError
from workers.desktops.host.client import DeskHostClient

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
    """Everything that waits for this host."""
    for operation in rows.take_operations(host=host):
        # Asked before the deed: a trajectory that is run again may soon be on the same desktop.
        running = desktop_taken.live_on_desktop(operation.target)
        try:
            outcome = VERBS[operation.verb](client, operation)
        except EnvError as error:
            rows.end_operation(operation=operation, status=OperationStatus.FAILED, outcome=str(error))
            continue
        # The agent holds connections of its own to the desktop and would go on acting there.
        word = WORDS[Verb(operation.verb)]
        reason = f": {operation.reason}" if operation.reason else ""
        why = f"desktop {operation.target} was {word} by {operation.asked_by_name}{reason}"
        for trajectory_id in running:
            if desktop_taken.take_away(trajectory_id=trajectory_id, error=why):
                outcome += f"; trajectory {trajectory_id} errored and queued again"
        rows.end_operation(operation=operation, status=OperationStatus.DONE, outcome=outcome)
        log.info("%s %s: %s", operation.verb, operation.target, outcome)
