"""Deletes our sandboxes that serve no trajectory: of workers that died, of answers that got lost.

Every env worker does it while it runs; a sandbox belongs to a trajectory by its key, so no record is needed.
"""

import logging
import threading
from collections.abc import Callable, Collection

from training.contracts.config import GatewayConfig
from workers.desktops.contract import EnvError
from workers.environments.gateway.open_vendor import open_vendor
from workers.environments.gateway.sandbox_environment import owner_of
from workers.reports.repeated_step import RepeatedStep

log = logging.getLogger(__name__)

INTERVAL_S = 60.0


def start(
    stopping: threading.Event,
    gateways_in_use: Callable[[], Collection[GatewayConfig]],
    keys_in_use: Callable[[], Collection[str]],
) -> None:
    """Delete them again and again in a thread, until `stopping`."""

    def look() -> None:
        delete_everywhere(gateways_in_use(), keys_in_use)

    RepeatedStep("unused-sandboxes", look, INTERVAL_S, stopping=stopping).start()


def delete_everywhere(gateways: Collection[GatewayConfig], keys_in_use: Callable[[], Collection[str]]) -> int:
    """`delete_unused` at each cluster; one that does not answer does not hold up the others. Their number."""
    count = 0
    for knobs in gateways:
        try:
            count += len(delete_unused(knobs, keys_in_use))
        except EnvError as error:
            log.warning("unused sandboxes at %s are not deleted: %s", knobs.endpoint or knobs.vendor, error)
    return count


def delete_unused(knobs: GatewayConfig, keys_in_use: Callable[[], Collection[str]]) -> list[str]:
    """Delete what no key in use names; the ids. Raises EnvError when the cluster does not answer.

    The keys are asked for after the list was taken: a trajectory is recorded before its sandbox is made.
    """
    owner = owner_of(knobs)
    vendor = open_vendor(knobs)
    deleted = []
    try:
        sandboxes = vendor.owned(owner)
        used = {f"{owner}/{key}" for key in keys_in_use()} if sandboxes else set()
        for sandbox in sandboxes:
            if sandbox.key in used or sandbox.owner not in ("", owner):
                continue
            vendor.delete(sandbox)
            deleted.append(sandbox.sandbox_id)
            log.warning("deleted sandbox %s (%s): it serves no trajectory", sandbox.sandbox_id, sandbox.key)
    finally:
        vendor.close()
    return deleted
