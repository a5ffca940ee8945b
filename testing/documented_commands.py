"""Commands of the documents, as they are written there."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass

from testing.paths import REPOSITORY

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(
    r"(\.venv[\w-]*/bin/|(make|deskhand|manage\.py) [a-z]|docker compose |python3? (-m |scripts/|manage))"
)
"""How inline code begins that is a command."""
HISTORY = ("CHANGELOG.md", "ARCHITECTURE.md", "docs/adr/")
"""Documents that speak of commands, and ask no one to type them."""


@dataclass(frozen=True, slots=True)
class Documented:
    """One command."""

    place: str
    """File and line."""
    text: str
    is_fenced: bool

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def documents() -> list[str]:
    """Markdown files that people read to use or change Deskhand."""
    names = subprocess.check_output(["git", "ls-files", "*.md"], cwd=REPOSITORY, text=True).split()
    return [name for name in names if not name.startswith(HISTORY)]


def documented_commands() -> list[Documented]:
    """Every command of a `sh` block, and every inline one, one by one."""
    return [found for name in documents() for found in commands_of(name, (REPOSITORY / name).read_text())]


def commands_of(name: str, page: str) -> list[Documented]:
    """The commands of one document."""
    found = []
    for fence in FENCE.finditer(page):
        first = page.count("\n", 0, fence.start(2)) + 1
        if fence[1] == "sh":
            for number, line in _joined(fence[2], first):
                found += [Documented(f"{name}:{number}", part, True) for part in _parts(line)]
    without = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), page)
    for number, line in enumerate(without.splitlines(), 1):
        for code in INLINE.findall(line):
            if COMMAND.match(code):
                found += [Documented(f"{name}:{number}", part, False) for part in _parts(code)]
    return found


def _joined(block: str, first: int) -> list[tuple[int, str]]:
    """Lines with their numbers; one that ends with a backslash goes on in the next."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(block.splitlines(), first):
        if lines and lines[-1][1].endswith("\\"):
            lines[-1] = (lines[-1][0], f"{lines[-1][1][:-1]} {line.strip()}")
        elif line.strip():
            lines.append((number, line.strip()))
    return lines


def _parts(line: str) -> list[str]:
    """The commands of a line: what stands between `&&` and `|`, without comments and redirections."""
    line = re.sub(r"\$\([^)]*\)", "X", line)  # what the shell fills in
    lexer = shlex.shlex(line, posix=False, punctuation_chars="&|<>;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    parts: list[list[str]] = [[]]
    skips = False
    for word in lexer:
        if set(word) <= set("&|;"):
            parts.append([])
        elif set(word) <= set("<>"):
            skips = True
        elif not skips:
            parts[-1].append(word)
        else:
            skips = False
    return [" ".join(part) for part in parts if part]
