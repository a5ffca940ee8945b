"""Scripts that need no page, by Node's own runner: `node --test tests/static/*.test.mjs` for one by hand."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testing.paths import REPOSITORY

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.test.mjs"))
SCRIPTS = REPOSITORY / "static" / "js"
PAGE = "document|window|location|localStorage|Plotly|dataset|querySelector|replaceChildren|hidden"
BROWSER = re.compile(rf"\b({PAGE})\b")
IMPORT = re.compile(r"""["']\.\./\.\./static/js/([\w/]+\.js)["']""")


def find_node() -> str:
    """Node.js of set-up, or the machine's own."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = shutil.which("node", path=path)
    assert found, "no Node.js: run `make setup-test`"
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_script_follows_its_rules(file: Path):
    options = ["--test", "--test-reporter=spec", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"]
    command = [find_node(), *options, str(file)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    number = re.search(r"^ℹ pass (\d+)$", run.stdout, re.MULTILINE)
    assert number, run.stdout
    assert int(number[1]) == len(re.findall(r"^test\(", file.read_text(), re.MULTILINE))


def test_every_script_without_a_page_has_a_unit_test():
    tested = {name for file in FILES for name in IMPORT.findall(file.read_text())}
    pure = {
        str(path.relative_to(SCRIPTS))
        for path in SCRIPTS.rglob("*.js")
        if not BROWSER.search(code_of(path.read_text()))
    }
    assert "trajectories/player_state.js" in pure
    assert sorted(pure - tested) == []


def code_of(script: str) -> str:
    """Without its lines of comment, which may speak of documents."""
    return "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
