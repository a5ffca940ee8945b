"""Rules of static/js that no linter knows."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

from testing.private_installation import REPOSITORY
from webapp.experiment_pages.part_contexts import PARTS as PARTS_OF_THE_PAGE

STATIC = REPOSITORY / "static"
SCRIPTS = sorted((STATIC / "js").rglob("*.js"))
MAX_LINES = 200
IMPORT = re.compile(r"""(?:^import\s+|\bfrom\s+|\bimport\()["']([^"']+)["']""", re.MULTILINE)
SETS_HTML = re.compile(r"\.(?:innerHTML|outerHTML)\s*=|insertAdjacentHTML|document\.write")


@pytest.fixture(params=SCRIPTS, ids=lambda file: str(file.relative_to(STATIC)))
def script(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_the_scripts_are_found():
    assert STATIC / "js" / "app.js" in SCRIPTS


def test_a_script_is_short_enough_to_read(script: Path):
    assert len(script.read_text().splitlines()) <= MAX_LINES


def test_every_module_that_a_script_imports_exists(script: Path):
    """A missing module stops the page's script without an error that a browser test would see."""
    paths = [
        (script.parent / name).resolve().relative_to(STATIC) for name in IMPORT.findall(script.read_text())
    ]
    assert [str(path) for path in paths if not finders.find(str(path))] == []


def test_html_from_the_server_gets_onto_a_page_in_one_place_only(script: Path):
    """`lib/server_html.js` keeps focus, scroll and input; another way would lose them."""
    if script != STATIC / "js" / "lib" / "server_html.js":
        assert SETS_HTML.findall(script.read_text()) == []


TEMPLATES = REPOSITORY / "templates"
PARTS = sorted(file for file in TEMPLATES.rglob("*.html") if file.parent.name == "parts")
INCLUDE = re.compile(r"""{%\s*include\s+["']([^"']+)["']""")


def test_what_is_included_lies_in_a_folder_of_parts():
    included = {name for file in TEMPLATES.rglob("*.html") for name in INCLUDE.findall(file.read_text())}
    assert len(included) > 30
    # A name that is put together begins with its folder.
    assert sorted(name for name in included if Path(f"{name}_").parent.name != "parts") == []


def test_every_part_is_used():
    """By an include or by a view; those of the experiment page by their names in `PARTS`."""
    sources = [*TEMPLATES.rglob("*.html"), *(REPOSITORY / "webapp").rglob("*.py")]
    text = "".join(file.read_text() for file in sources)
    names = {f"experiments/parts/{name}.html" for name in PARTS_OF_THE_PAGE}
    unused = [
        name for name in (str(file.relative_to(TEMPLATES)) for file in PARTS) if f'"{name}"' not in text
    ]
    assert sorted(set(unused) - names) == []
