"""Gives a test session Django, Redis and a database, unless it only runs tests of `training`.

    pytest tests/training     needs requirements/{core,training}.txt and the test tools, but no Django

Loaded by `addopts`: settings must be chosen before pytest-django and the first conftest look for them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.paths import REPOSITORY
from testing.small_disk import NoGround

WITHOUT_DJANGO = REPOSITORY / "tests" / "training"
SETTINGS = "testing.session.django_settings"


def needs_django(early_config: pytest.Config) -> bool:
    """True unless every path of the command line lies in `tests/training`."""
    paths = [
        Path(name.partition("::")[0]).resolve() for name in early_config.known_args_namespace.file_or_dir
    ]
    return not paths or any(path != WITHOUT_DJANGO and WITHOUT_DJANGO not in path.parents for path in paths)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Before pytest-django's own hook, which is no wrapper."""
    if needs_django(early_config):
        os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
        early_config.pluginmanager.import_plugin("testing.session.fixtures")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Iterator[object]:
    """A fixture without the ground that it needs skips its test."""
    try:
        return (yield)
    except NoGround as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[object]:
    """And so does a test."""
    try:
        return (yield)
    except NoGround as error:
        pytest.skip(str(error))
