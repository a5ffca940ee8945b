"""Product, pages and documents leave out words that say nothing exact."""

import re
import subprocess

from testing.paths import REPOSITORY

LEFT_OUT = re.compile(r"\b(somebody|nobody|whoever|so many|torch-free)\b", re.IGNORECASE)
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
# The policy reads these sentences: changed words would be another prompt.
PROMPTS = {"training/render/prompts.py", "webapp/trajectories/queries/branches.py"}


def test_nothing_is_said_of_somebody_or_so_many():
    names = subprocess.check_output(["git", "ls-files", *PLACES], cwd=REPOSITORY, text=True).split()
    found = []
    for name in names:
        if name in PROMPTS or not name.endswith((".py", ".md", ".html", ".js", ".yaml", ".ps1")):
            continue
        for number, line in enumerate((REPOSITORY / name).read_text().splitlines(), start=1):
            found += [f"{name}:{number}: {word}" for word in LEFT_OUT.findall(line)]
    assert found == []
