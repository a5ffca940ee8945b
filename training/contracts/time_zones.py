"""Time zone and locale that a task may name for its desktop; every other desktop has the same of both."""

import zoneinfo
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, StringConstraints


@cache
def known_zones() -> frozenset[str]:
    """Names of the IANA database, as far as this machine has it."""
    return frozenset(zoneinfo.available_timezones())


def _known(name: str) -> str:
    if name and known_zones() and name not in known_zones():
        raise ValueError(f'no time zone is named {name!r}; write an IANA name, such as "Europe/Berlin"')
    return name


TimeZone = Annotated[
    str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$"), AfterValidator(_known)
]
Locale = Annotated[str, StringConstraints(max_length=64, pattern=r"^([A-Za-z0-9_.@-]+)?$")]
"""Whether a desktop has it, its set-up says: locales come with the desktop's system."""
