"""The deletion test itself: what is removed of a registry, and that features are named nowhere else."""

import subprocess
from pathlib import Path

import pytest

from scripts.check_deletable.features import Feature, features
from scripts.check_deletable.remove_rows import names_any, without_rows
from testing.paths import REPOSITORY

REGISTRY = """
from app.contract import Row
from app.mail import MAIL
from app.post import POST, extra

def _late():
    from app.late.sink import Sink

    return Sink

ROWS: dict[str, Row] = {
    "mail": MAIL,  # stays
    "post": POST,
    "late": Row(_late, extra=[1, 2]),
    "pages": Row(None),
}
NAMES = ("app.post.sink:Sink", "app.mail.sink:Sink")
"""
ALL = list(features())


def test_a_row_goes_with_its_import_and_its_element():
    left = without_rows(REGISTRY, ["app.post"])
    assert "post" not in left.casefold()
    assert '"mail": MAIL,  # stays' in left
    assert 'NAMES = ("app.mail.sink:Sink")' in left
    assert '"late": Row(_late, extra=[1, 2])' in left


def test_a_function_that_imports_late_goes_with_the_elements_that_use_it():
    left = without_rows(REGISTRY, ["app.late"])
    assert "late" not in left
    assert '"post": POST' in left


def test_fields_and_exported_names_go_with_their_type():
    text = """
from app.config.mail import MailConfig
from app.config.post import PostConfig, POST

__all__ = ["MailConfig", "PostConfig"]

class Config:
    mail: MailConfig = MailConfig()
    post: PostConfig = PostConfig()
"""
    left = without_rows(text, ["app.config.post"])
    assert "post" not in left.casefold()
    assert "    mail: MailConfig = MailConfig()\n" in left
    assert '__all__ = ["MailConfig"' in left


def test_rows_are_found_by_their_keys_too():
    assert '"pages"' not in without_rows(REGISTRY, [], keys=["pages"])
    assert without_rows(REGISTRY, []) == REGISTRY


def test_only_whole_names_of_modules_count():
    assert names_any("from app.mailing import x", ["app.mail"]) is False
    assert names_any("from app import mail", ["app.mail"]) is True
    assert names_any('x = "app.mail.sink:Sink"', ["app.mail"]) is True


def test_there_are_enough_features_to_call_it_a_rule():
    assert len(ALL) >= 12


@pytest.mark.parametrize("feature", ALL, ids=lambda one: one.title)
def test_a_feature_has_its_tests_and_a_row_and_is_named_nowhere_else(feature: Feature):
    assert list((REPOSITORY / "tests" / feature.title).rglob("test_*.py"))
    modules, keys, own = feature.modules(), feature.keys(), feature.paths()
    rows = {REPOSITORY / name for name in feature.room.rows}
    for row in rows:
        text = row.read_text()
        left = without_rows(text, modules, keys)
        assert not names_any(left, modules)
        compile(left, str(row), "exec")
    if feature.room.has_registry:
        assert names_any((REPOSITORY / feature.room.folder / "registry.py").read_text(), modules)
    assert [str(file) for file in named_in(modules) if file not in rows and not is_within(file, own)] == []


def is_within(file: Path, folders: list[Path]) -> bool:
    return any(file == folder or folder in file.parents for folder in folders)


def named_in(modules: list[str]) -> list[Path]:
    """Python files of the tree that import one of these modules."""
    words = [word for module in modules for word in ("-e", module.rpartition(".")[2])]
    found = subprocess.run(
        ["git", "grep", "-lF", *words, "--", "*.py"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    files = [REPOSITORY / name for name in found.stdout.split()]
    return [file for file in files if names_any(file.read_text(), modules)]
