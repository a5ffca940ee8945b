"""The part of a stylesheet that our pages can use: of a whole framework they use a fifth.

A browser shows nothing before it has read every rule, so each rule costs each page. A rule is left out when
all its selectors ask for a class or an id that stands nowhere in our templates, scripts and Python; words in
comments count as well, so that too much is kept and never too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from pathlib import Path

from django.conf import settings

TOKEN = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[{};]""", re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LICENCE = re.compile(r"/\*!.*?\*/", re.DOTALL)
IN_PARENTHESES = r"\((?:[^()]|\([^()]*\))*\)"
SELECTOR = re.compile(rf"(?:[^,()]|{IN_PARENTHESES})+")
NO_NAMES = re.compile(rf"{IN_PARENTHESES}|\[[^]]*\]")
"""Arguments of `:not()` and the like, and attributes: what they ask for may be missing."""
NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
WORD = re.compile(r"[\w-]+")
CONDITIONS = ("@media", "@supports", "@layer", "@container")
"""Rules that hold rules."""


def used_styles(css: str, words: Set[str]) -> str:
    """`css` without the rules that need other names than `words`; its licence comes last."""
    return "".join((*_used(css, words), *LICENCE.findall(css)))


def words_of_pages() -> frozenset[str]:
    """Every word of what can name a class: templates, scripts, and Python that writes HTML."""
    return frozenset(word for file in sources_of_pages() for word in WORD.findall(file.read_text()))


def sources_of_pages() -> list[Path]:
    """The files of `words_of_pages`."""
    places = [(settings.BASE_DIR / "templates", "*.html"), (settings.BASE_DIR / "webapp", "*.py")]
    places += [(Path(folder), "*.js") for folder in settings.STATICFILES_DIRS]
    return sorted(file for folder, pattern in places for file in folder.rglob(pattern))


def _used(css: str, words: Set[str]) -> Iterator[str]:
    for prelude, body in _rules(css):
        if body is None or prelude.startswith("@") and not prelude.startswith(CONDITIONS):
            yield prelude if body is None else f"{prelude}{{{body}}}"
        elif prelude.startswith("@"):
            if inner := "".join(_used(body, words)):
                yield f"{prelude}{{{inner}}}"
        elif kept := [one for one in SELECTOR.findall(prelude) if _names(one) <= words]:
            yield f"{','.join(kept)}{{{body}}}"


def _rules(css: str) -> Iterator[tuple[str, str | None]]:
    """(what stands before the braces, what stands in them) of each outermost rule; None without braces."""
    depth = start = opened = 0
    for token in TOKEN.finditer(css):
        if token[0] == "{":
            opened = opened if depth else token.start()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                yield COMMENT.sub("", css[start:opened]).strip(), css[opened + 1 : token.start()]
                start = token.end()
        elif token[0] == ";" and depth == 0:
            yield COMMENT.sub("", css[start : token.end()]).strip(), None
            start = token.end()


def _names(selector: str) -> set[str]:
    """Classes and ids that an element and those around it must have; of an escaped one its pieces."""
    return {word for name in NAME.findall(NO_NAMES.sub("", selector)) for word in WORD.findall(name)}
