"""Desktop providers: one row per technology."""

from workers.providers.base import Provider
from workers.providers.x11 import X11Provider

PROVIDERS: dict[str, type[Provider]] = {
    "x11": X11Provider,
}
