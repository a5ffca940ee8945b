"""How Sphinx builds the site under Help: pages as JSON for `webapp.help`, their list, and a search index."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

project = "Deskhand"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("docs/**.md", "deploy/client/**.md"),
]
exclude_patterns = [".*", "docs/site*", "node_modules", "out", "var"]
suppress_warnings = ["misc.highlighting_failure"]
myst_heading_anchors = 4
html_permalinks_icon = "#"
html_copy_source = False

SECTIONS: list[tuple[str, str, str, str]] = []
COLUMNS = "url UNINDEXED, page, heading, text, tokenize = 'porter unicode61'"


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", read_sections)
    app.connect("build-finished", write_lists)


def read_sections(app: Sphinx, name: str, template: str, context: dict[str, Any], page: Any) -> None:
    """Keep what the index finds of a page: its sections, each with an address of its own."""
    url = app.builder.get_target_uri(name)
    for section in page.findall(nodes.section) if page else ():
        heading, *parts = section.children
        text = "\n".join(part.astext() for part in parts if not isinstance(part, nodes.section))
        anchor = "" if section.parent is page else f"#{section['ids'][0]}"
        SECTIONS.append((url + anchor, context["title"], heading.astext(), text))


def write_lists(app: Sphinx, error: Exception | None) -> None:
    """Write navigation.json, which pages are under which caption, and search.sqlite3 for full-text search."""
    if error:
        return
    front = app.env.get_doctree(root_doc)
    navigation = [
        {"caption": part["caption"], "pages": [_link(app, name) for _, name in part["entries"]]}
        for part in front.findall(addnodes.toctree)
    ]
    (Path(app.outdir) / "navigation.json").write_text(json.dumps(navigation))
    with sqlite3.connect(Path(app.outdir) / "search.sqlite3") as index:
        index.execute(f"CREATE VIRTUAL TABLE sections USING fts5({COLUMNS})")
        index.executemany("INSERT INTO sections VALUES (?, ?, ?, ?)", SECTIONS)


def _link(app: Sphinx, name: str) -> dict[str, str]:
    return {"title": app.env.titles[name].astext(), "url": app.builder.get_target_uri(name)}
