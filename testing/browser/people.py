"""Who takes part in the browser tests."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from playwright.sync_api import Page

from webapp.accounts.models import Team


@dataclass
class People:
    """A team and its members."""

    team: Team
    operator: User
    viewer: User


SignIn = Callable[[User], Page]
"""Opens a page as that user."""
