"""The cluster that a config names: a vendor of ours, or an adapter of a vendor's SDK."""

import importlib
from collections.abc import Callable

from django.conf import settings

from training.contracts.config import GatewayConfig
from workers.desktops.contract import EnvError
from workers.environments.gateway.http_vendor import HttpVendor
from workers.environments.gateway.osworld_guest.vendor import OsworldGuestVendor
from workers.environments.gateway.vendor_contract import SandboxVendor
from workers.environments.secret_values import secret_value

BUILT_IN: dict[str, Callable[[GatewayConfig, str], SandboxVendor]] = {
    "http": HttpVendor,
    "osworld-guest": OsworldGuestVendor,
}
"""As `training.contracts.config.providers.gateway.VENDORS` names them."""


def open_vendor(knobs: GatewayConfig) -> SandboxVendor:
    """The vendor that the config names, with its token. Raises EnvError."""
    token = secret_value(knobs.token_secret) if knobs.token_secret else ""
    if knobs.vendor in BUILT_IN:
        return BUILT_IN[knobs.vendor](knobs, token)
    if knobs.vendor not in settings.GATEWAY_VENDORS:
        message = f"desktops.gateway.vendor {knobs.vendor} is not in DESKHAND_GATEWAY_VENDORS here"
        raise EnvError(message, permanent=True)
    module_name, _, factory_name = knobs.vendor.partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        message = f"desktops.gateway.vendor {knobs.vendor}: {error}; install its SDK where env workers run"
        raise EnvError(message, permanent=True) from error
    vendor: SandboxVendor = factory(knobs, token)
    return vendor
