"""Sentences of the pages that people read first have at most 30 words, and the changelog stays a list."""

import re
import subprocess

from testing.paths import REPOSITORY

MAX_WORDS = 30
WHOLE = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "docs/index.md", "docs/using.md")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?])[*_]*\s+(?=[*_]*[A-Z`*\[])| · ")
MAX_ENTRIES = 80
MAX_ENTRY = 160


def sentences(text: str) -> list[str]:
    """Of paragraphs, items and cells of tables; code counts as one word, addresses as none."""
    plain = LINK.sub(r"\1", CODE.sub("Code", FENCE.sub("", text)))
    found: list[str] = []
    block: list[str] = []
    for line in [*plain.splitlines(), ""]:
        is_own = line.startswith("|") or re.match(r"\s*(?:[-*] |\d+\. |#)", line)
        if not line.strip() or is_own:
            found += END.split(" ".join(block))
            block = []
        if line.startswith("|"):
            found += [one for cell in line.split("|") for one in END.split(cell.strip())]
        elif line.startswith("#"):
            found.append(line)
        elif line.strip():
            block.append(line.strip())
    return [one for one in found if one]


def too_long(text: str) -> list[str]:
    return [one for one in sentences(text) if len(re.findall(r"\w[\w'’.-]*", one)) > MAX_WORDS]


def first_page(text: str) -> str:
    """Down to the second heading of a page."""
    return "\n## ".join(text.split("\n## ")[:2])


def test_long_sentences_are_found():
    long = "A sentence of words " + "that goes on " * 10 + "ends."
    assert too_long(f"Short. {long} Short again.") == [long]
    assert too_long(f"| cell | {long} |") == [long]
    assert too_long("`" + "word " * 40 + "` is code.") == []
    assert too_long("- item one\n" * 40) == []


def test_no_sentence_of_the_first_pages_is_too_long():
    names = subprocess.check_output(["git", "ls-files", "docs/*.md"], cwd=REPOSITORY, text=True).split()
    pages = {name: (REPOSITORY / name).read_text() for name in (*names, *WHOLE) if "/adr/0" not in name}
    found = {
        name: long
        for name, text in pages.items()
        if (long := too_long(text if name in WHOLE else first_page(text)))
    }
    assert found == {}


def entries(changelog: str) -> list[str]:
    return [line for line in changelog.splitlines() if line and not line.startswith("#")]


def test_an_entry_of_the_changelog_is_one_short_line():
    found = entries((REPOSITORY / "CHANGELOG.md").read_text())
    assert [entry for entry in found if not entry.startswith("- ") or len(entry) > MAX_ENTRY] == []


def test_a_release_has_at_most_80_entries():
    for release in (REPOSITORY / "CHANGELOG.md").read_text().split("\n## ")[1:]:
        assert len(entries(release)) <= MAX_ENTRIES, release.splitlines()[0]
