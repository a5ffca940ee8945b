"""The product's settings in the environment of a test session.

pytest-django reads settings before any conftest is imported, so this module is where that environment has to
be made. Child processes use the product's own settings: they inherit the environment.
"""

import os

import testing.session.environment
from webapp.settings import *  # noqa: F403
from webapp.settings import DATABASES

if not testing.session.environment.ON_POSTGRES:
    DATABASES["default"]["ENGINE"] = "testing.strict_sqlite3"

os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
