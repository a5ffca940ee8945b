"""The documentation as a site below docs/site, which the web process serves under Help."""

import shutil
import tempfile
from pathlib import Path

from requirement_files import REQUIREMENTS
from setup_common import REPOSITORY, VENV_PYTHON, digest, run

SITE = REPOSITORY / "docs" / "site"
DIGEST = SITE / ".built-of"


def install_help() -> bool:
    """Build the site when a document changed; False when it was up to date."""
    expected = digest(sources())
    if DIGEST.is_file() and DIGEST.read_text() == expected:
        return False
    with tempfile.TemporaryDirectory(prefix="deskhand-help-") as folder:
        built = Path(folder) / "site"
        options = ["-q", "-b", "json", "-c", "docs", "-d", f"{folder}/doctrees"]
        run([str(VENV_PYTHON), "-m", "sphinx", *options, ".", str(built)], "building the documentation")
        (built / DIGEST.name).write_text(expected)
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.copytree(built, SITE)
    return True


def sources() -> list[Path]:
    """All that decides what the site says."""
    folders = (REPOSITORY / "docs", REPOSITORY / "deploy" / "client")
    pages = [page for folder in folders for page in folder.rglob("*.md") if SITE not in page.parents]
    own = [REPOSITORY / "docs" / "conf.py", REQUIREMENTS / "docs.txt"]
    return sorted([*REPOSITORY.glob("*.md"), *pages, *(REPOSITORY / "docs" / "images").iterdir(), *own])
