"""What a way to sign in offers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.urls import URLPattern


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """One that may be set up; people choose it on the sign-in page."""

    label: Callable[[], str]
    """What its button calls it; "" where it is not set up."""
    start: str
    """Name of the route that sends people there."""
    routes: Sequence[URLPattern]
    """Its routes, this one among them."""
