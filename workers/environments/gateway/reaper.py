"""Deletes our sandboxes that serve no trajectory: of workers that died, of answers that got lost.

Every env worker does it while it runs; a sandbox belongs to a trajectory by its key, so no record is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from training.contracts.config import GatewayConfig
from workers.desktops.contract import EnvError
from workers.environments.gateway.environment import open_vendor, owner_of

log = logging.getLogger(__name__)

REAP_EVERY_S = 60.0


def reap(knobs: GatewayConfig, keys_in_use: Callable[[], Collection[str]]) -> list[str]:
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


def reap_all(every: Collection[GatewayConfig], keys_in_use: Callable[[], Collection[str]]) -> int:
    """`reap` at each cluster; one that does not answer does not hold up the others. How many were deleted."""
    count = 0
    for knobs in every:
        try:
            count += len(reap(knobs, keys_in_use))
        except EnvError as error:
            log.warning("sandboxes at %s not looked after: %s", knobs.endpoint or knobs.vendor, error)
    return count
