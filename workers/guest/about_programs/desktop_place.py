"""Time zone and locale of a desktop's programs."""

import locale as libc_locale
import os

DEFAULT_PLACE = {"TZ": "UTC", "LANG": "C.UTF-8"}
"""Every desktop's time zone and locale, whatever its host has; a task may name others (`use_place`)."""
ZONES = "/usr/share/zoneinfo"


def require_place(timezone: str, locale: str) -> None:
    """Raises ValueError when this desktop's system lacks one of them."""
    parts = timezone.split("/")
    if timezone != DEFAULT_PLACE["TZ"] and (".." in parts or not os.path.isfile(os.path.join(ZONES, *parts))):
        raise ValueError(f"timezone: this desktop's system has no {timezone!r}")
    usual = libc_locale.setlocale(libc_locale.LC_ALL)
    try:
        libc_locale.setlocale(libc_locale.LC_ALL, locale)
    except libc_locale.Error as exc:
        raise ValueError(f"locale: this desktop's system has no {locale!r}") from exc
    finally:
        libc_locale.setlocale(libc_locale.LC_ALL, usual)
