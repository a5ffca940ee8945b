"""The site as set-up builds it, of the documents of this tree."""

import subprocess
import sys
from pathlib import Path

import pytest

from testing.paths import REPOSITORY


@pytest.fixture(scope="session")
def built_site(tmp_path_factory) -> Path:
    """Every warning is an error: a page without a place in the list, a link to nothing."""
    folder = tmp_path_factory.mktemp("help")
    options = ["-q", "-W", "--keep-going", "-b", "json", "-c", "docs", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(folder / "site")]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "site"


@pytest.fixture
def site(built_site: Path, monkeypatch) -> Path:
    """The same, as what the web process serves."""
    monkeypatch.setattr("webapp.help.site.SITE", built_site)
    return built_site
