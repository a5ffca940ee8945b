"""Texts at keys of JSON columns: as they were stored on both databases, and never by a plain transform."""

import ast
import re
import subprocess

import pytest
from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db.models import JSONField, Model

from testing.factories import make_trajectory
from testing.paths import REPOSITORY
from webapp.lib.statements.json_keys import text_of
from webapp.trajectories.models import TurnRecord

OWNER = "webapp/lib/statements/json_keys.py"
NO_TEXTS = {
    "spec__config": "a list",
    "spec__evaluator": "an object",
    "spec__max_turns": "a number",
    "spec__milestones": "a list",
    "spec__published": "an object",
    "spec__screen": "a list",
    "task__spec__max_turns": "a number",
    "task__spec__screen": "a list",
    "config__desktops__num_desktops": "a number",
}
"""What may be read by a plain transform: values that Django must parse."""
PATH = re.compile(r"-?[a-z]\w*__\w+")
TRANSFORMS = {"KT", "KeyTransform", "KeyTextTransform"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text",
    ['{"action":"key","keys":["enter"]}', "[1, 2]", "12", "true", "null", '"quoted"', "1e400", "", " said\n"],
)
def test_a_text_comes_back_as_it_was_stored(text):
    turn = make_trajectory(turns=1).turns.get()
    turn.completion["text"] = text
    turn.save()
    assert list(TurnRecord.objects.values_list(text_of("completion__text"), flat=True)) == [text]


@pytest.mark.django_db
def test_a_turn_without_a_completion_has_no_text():
    turn = make_trajectory(turns=1).turns.get()
    turn.completion = None
    turn.save()
    assert list(TurnRecord.objects.values_list(text_of("completion__text"), flat=True)) == [None]


def test_texts_at_keys_are_read_by_their_one_owner():
    names = subprocess.check_output(["git", "ls-files", "webapp"], cwd=REPOSITORY, text=True).split()
    files = [name for name in names if name.endswith(".py") and "/migrations/" not in name and name != OWNER]
    found = [f"{name}:{line}" for name in files for line in plain_transforms((REPOSITORY / name).read_text())]
    assert found == [], f"use text_of of {OWNER}, or say in NO_TEXTS what the key holds"


def plain_transforms(text: str) -> list[str]:
    """Line and path of strings that name a key of a JSON column outside `text_of`; imports of transforms."""
    tree = ast.parse(text)
    owned = {
        id(part)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "text_of"
        for part in ast.walk(call)
    }
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=names):
                found += [f"{node.lineno} {one.name}" for one in names if one.name in TRANSFORMS]
            case ast.Constant(value=str(path)) if id(node) not in owned and PATH.fullmatch(path):
                if path not in NO_TEXTS and names_a_key(path.removeprefix("-")):
                    found.append(f"{node.lineno} {path}")
    return found


def names_a_key(path: str) -> bool:
    """Does it lead from any model to a key of a JSON column?"""
    return any(_leads_to_a_key(model, path.split("__")) for model in apps.get_models())


def _leads_to_a_key(model: type[Model], parts: list[str]) -> bool:
    for place, part in enumerate(parts):
        try:
            field = model._meta.get_field(part)
        except FieldDoesNotExist:
            return False
        if isinstance(field, JSONField):
            return parts[place + 1 :] not in ([], ["isnull"], ["contains"])
        if not field.is_relation or field.related_model is None:
            return False
        model = field.related_model
    return False


def test_plain_transforms_are_found():
    text = (
        'from django.db.models.fields.json import KT\nrows.values_list("pk", "completion__text")\n'
        'F("turns__completion__text")\norder_by("-detail__name")\ntext_of("completion__text")\n'
        'rows.only("experiment__name")\nrows.values("completion__isnull")\nvalues("spec__max_turns")\n'
    )
    assert plain_transforms(text) == [
        "1 KT",
        "2 completion__text",
        "3 turns__completion__text",
        "4 -detail__name",
    ]
