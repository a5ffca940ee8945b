"""The package of deploy/client has the half that is written at set-up, or there is no package."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from testing.paths import REPOSITORY
from webapp.api.urls import api

BUILD = "import setuptools.build_meta as build; build.build_wheel('.')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "client"
    shutil.copytree(REPOSITORY / "deploy" / "client", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BUILD]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_package_has_a_method_for_each_operation_of_the_schema(folder):
    done = build(folder)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        text = files.read("deskhand_client/operations.py").decode()
        assert {"deskhand_client/models.py", "deskhand_client/data_block.py"} <= set(files.namelist())
    paths = api.get_openapi_schema()["paths"].values()
    names = [operation["operationId"] for path in paths for operation in path.values()]
    assert len(names) > 100
    assert [name for name in names if f"    def {name}(" not in text] == []


def test_half_a_client_is_no_package_and_says_what_to_run(folder):
    (folder / "deskhand_client" / "operations.py").unlink()
    done = build(folder)
    assert done.returncode != 0
    assert "run `make setup` in Deskhand's folder first" in done.stderr
