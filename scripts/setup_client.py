"""The half of the Python client that is written from the API's schema."""

from pathlib import Path

from requirement_files import REQUIREMENTS
from setup_common import REPOSITORY, VENV_PYTHON, digest, run

PACKAGE = REPOSITORY / "deploy" / "client" / "deskhand_client"
DIGEST = PACKAGE / ".written-of"


def install_client() -> bool:
    """Write it when something changed that the schema may come from; False when it was up to date."""
    expected = digest(sources())
    if DIGEST.is_file() and DIGEST.read_text() == expected and (PACKAGE / "operations.py").is_file():
        return False
    run([str(VENV_PYTHON), "-m", "scripts.write_client"], "writing the Python client")
    DIGEST.write_text(expected)
    return True


def sources() -> list[Path]:
    """All that decides what operations there are, and what they take."""
    code = (path for room in ("training", "webapp") for path in (REPOSITORY / room).rglob("*.py"))
    return [*sorted(code), REPOSITORY / "scripts" / "write_client.py", REQUIREMENTS / "core.txt"]
