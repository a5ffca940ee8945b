"""Marks of tests, by what they touch."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from testing.paths import REPOSITORY

DATABASE_FIXTURES = {"db", "transactional_db", "django_db_setup", "web_server"}
BROWSER_FIXTURES = {"page", "context", "browser"}
DESKTOP_FIXTURES = {"env_worker", "desk_client"}
BROWSER_TESTS = REPOSITORY / "tests" / "browser"
# The same examples in every run: a new failure comes with the change that brought it.
settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark what touches the database or a browser; when all plugins have ordered, put browsers last.

    Playwright's synchronous interface keeps an event loop running in the main thread once it has started;
    an asyncio test after it could not start its own. And tests that make network interfaces come first: a
    browser that runs beside them drops its requests (ERR_NETWORK_CHANGED).
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & DATABASE_FIXTURES or item.get_closest_marker("django_db"):
            item.add_marker("db")
        if fixtures & BROWSER_FIXTURES or BROWSER_TESTS in item.path.parents:
            item.add_marker("browser")
            if fixtures & DESKTOP_FIXTURES:
                item.add_marker("postgres")
    yield
    items.sort(
        key=lambda item: (
            item.get_closest_marker("browser") is not None,
            item.get_closest_marker("network") is None,
        )
    )
