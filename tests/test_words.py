"""Product, pages and documents leave out words that say nothing exact."""

import re
import subprocess

from testing.paths import REPOSITORY

LEFT_OUT = re.compile(
    r"\b(somebody|nobody|whoever|so many|torch-free|told|brought about|will do for)\b", re.IGNORECASE
)
"""Words that say nothing exact, and those of a dialect: an engineer says report, request, deliver, event."""
PLACES = (
    "training",
    "workers",
    "webapp",
    "templates",
    "static",
    "docs",
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
)
OF_PEOPLE = re.compile(r"\b(asked|wanted|tells?|happenings?|patience)\b", re.IGNORECASE)
"""More of them, in documents and in the words of pages; ADRs keep theirs, and so do generated pages."""
NO_WORDS = re.compile(r"{%.*?%}|{{.*?}}|<[^>]*>|`[^`]*`", re.DOTALL)
"""Tags and code, which name things of the code."""
GENERATED = {"docs/settings.md", "docs/licences.md"}
# The policy reads these sentences: changed words would be another prompt.
PROMPTS = {
    "training/actions/dialects/keyboard/dialect.py",
    "training/actions/dialects/keyboard_mouse/dialect.py",
    "training/render/prompts.py",
    "webapp/trajectories/queries/branches.py",
}


def test_nothing_is_said_of_somebody_or_so_many():
    names = subprocess.check_output(["git", "ls-files", *PLACES], cwd=REPOSITORY, text=True).split()
    found = []
    for name in names:
        if name in PROMPTS or not name.endswith((".py", ".md", ".html", ".js", ".yaml", ".ps1")):
            continue
        for number, line in enumerate((REPOSITORY / name).read_text().splitlines(), start=1):
            found += [f"{name}:{number}: {word}" for word in LEFT_OUT.findall(line)]
    assert found == []


def test_documents_and_pages_use_the_words_of_the_field():
    names = subprocess.check_output(
        ["git", "ls-files", "*.md", "templates/*.html"], cwd=REPOSITORY, text=True
    ).split()
    found = []
    for name in names:
        if name in GENERATED or "docs/adr/" in name or name.startswith(("training/", "benchmarks/")):
            continue
        text = NO_WORDS.sub("", (REPOSITORY / name).read_text())
        found += [f"{name}: {word}" for word in OF_PEOPLE.findall(text)]
    assert found == []
