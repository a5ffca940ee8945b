"""Connections to addresses that this installation allows, decided when the name has been looked up.

What a name stands for can change between a check and the connection; so the address that was checked is the
one that is connected to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpcore
from django.conf import settings

from training.contracts.remote_addresses import RefusedAddress, allowed_addresses
from workers.desktops.contract import EnvError


class AllowedAddresses(httpcore.SyncBackend):
    """httpcore's own network, behind the check. Raises EnvError for an address that is refused."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = allowed_addresses(host, port, settings.REMOTE_NETWORKS)
        except RefusedAddress as refused:
            raise EnvError(str(refused), permanent=True) from refused
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        for address in addresses[:-1]:
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError:
                continue
        return super().connect_tcp(addresses[-1], port, timeout, local_address, socket_options)
