"""The site that set-up built of docs/ (`docs/conf.py`): its pages, their list, and its search index."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings

SITE: Path = settings.BASE_DIR / "docs" / "site"
FRONT_PAGE = "docs"
MAX_HITS = 25
MAX_WORDS = 12
WORD = re.compile(r"\w+")
HITS = """
SELECT url, page, heading, snippet(sections, 3, char(2), char(3), '…', 24) FROM sections
WHERE sections MATCH ? ORDER BY bm25(sections, 0, 4, 8, 1) LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of the list of pages."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class HelpPage:
    """One page as HTML of our own documents."""

    title: str
    body: str
    contents: str
    """The list of its headings."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that has all words of a search."""

    url: str
    page: str
    heading: str
    parts: tuple[tuple[str, bool], ...]
    """Pieces of its text, and whether each is a word that was searched."""


def read_page(name: str) -> HelpPage | None:
    """The page at a path of the site; None when there is none."""
    for candidate in (f"{name}.fjson", f"{name}/index.fjson"):
        if path := site_file(candidate):
            return _page(path, path.stat().st_mtime_ns)
    return None


def site_file(name: str) -> Path | None:
    """A file of the site; None for one that is not there, or would lie outside."""
    path = (SITE / name).resolve()
    is_inside = path.is_relative_to(SITE.resolve())
    return path if is_inside and path.is_file() else None


def navigation() -> tuple[tuple[str, tuple[Link, ...]], ...]:
    """(caption, its pages) in reading order; empty while no site is built."""
    path = site_file("navigation.json")
    return _navigation(path, path.stat().st_mtime_ns) if path else ()


def search(text: str) -> list[Hit]:
    """The sections that have every word of a text, or one that begins with it; best first."""
    path = site_file("search.sqlite3")
    words = WORD.findall(text)[:MAX_WORDS]
    if not path or not words:
        return []
    expression = " ".join(f'"{word}"*' for word in words)
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as index:
        return [
            Hit(url, page, heading, _marked(snippet))
            for url, page, heading, snippet in index.execute(HITS, (expression, MAX_HITS))
        ]


def _marked(snippet: str) -> tuple[tuple[str, bool], ...]:
    pieces = re.split("[\x02\x03]", snippet)
    return tuple((piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece)


@lru_cache(maxsize=128)
def _page(path: Path, changed_at: int) -> HelpPage:
    found = json.loads(path.read_text())
    body = found["body"]
    heading_end = body.find("</h1>") + len("</h1>")  # the page's own heading stands above it
    start = body.find("<h1>")
    return HelpPage(found["title"], body[:start] + body[heading_end:], found["toc"])


@lru_cache(maxsize=2)
def _navigation(path: Path, changed_at: int) -> tuple[tuple[str, tuple[Link, ...]], ...]:
    parts = json.loads(path.read_text())
    return tuple((part["caption"], tuple(Link(**page) for page in part["pages"])) for part in parts)
