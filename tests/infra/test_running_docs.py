"""docs/running.md names every environment variable and every option of `up`, and no other."""

import re

from django.core.management import load_command_class

from testing.private_installation import REPOSITORY

PAGE = (REPOSITORY / "docs" / "running.md").read_text()
VARIABLE = r"DESKHAND_[A-Z_]+|DATABASE_URL|REDIS_URL"
# Handed from one process of ours to another, never set by people.
INTERNAL = {
    "DESKHAND_CHILD",
    "DESKHAND_COORDINATOR_URL",
    "DESKHAND_COORDINATOR_TOKEN",
    "DESKHAND_DB_KEEP",
    "DESKHAND_ENGINE_GPUS",
    "DESKHAND_FRAMES_DIR",
    "DESKHAND_IMAGE_FOLDER",
    "DESKHAND_POLICY_TOKEN",
    "DESKHAND_RANK_STORE",
    "DESKHAND_RANK_STORE_LISTENER",
}


def test_every_environment_variable_is_documented_and_every_documented_one_is_read():
    sources = [
        file for part in ("webapp", "workers", "training") for file in (REPOSITORY / part).rglob("*.py")
    ]
    read = set().union(*(re.findall(rf"[\"']({VARIABLE})[\"']", file.read_text()) for file in sources))
    documented = set(re.findall(rf"^\| `({VARIABLE})`", PAGE, re.MULTILINE))
    assert documented == read - INTERNAL


def test_every_option_of_up_is_documented():
    command = load_command_class("webapp.fleet", "up")
    parser = command.create_parser("manage.py", "up")
    django_s = load_command_class("django.core", "check").create_parser("manage.py", "check")
    own = {
        option for action in parser._actions for option in action.option_strings if option.startswith("--")
    }
    common = {option for action in django_s._actions for option in action.option_strings}
    assert {option for option in own - common if f"`{option}" not in PAGE} == set()
