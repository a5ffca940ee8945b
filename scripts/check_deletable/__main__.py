"""Delete optional features one by one, in a copy of the tree, and see whether the rest still holds.

    python -m scripts.check_deletable --all            # every feature, with the other tests of its room
    python -m scripts.check_deletable --feature slime
    python -m scripts.check_deletable --sample         # one, without those tests: as `make check` does

The sample is chosen by the number of commits: the same for a commit, and each feature has its turn.

A feature is gone when its folder, its tests, its page and its rows are. Then lint, import directions, types
and the other tests of its room must pass, and no other file may name its modules.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.check_deletable.features import Feature, features
from scripts.check_deletable.product_copy import ProductCopy
from testing.paths import REPOSITORY

CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lint", ("ruff", "check", "--quiet", ".")),
    ("types", ("mypy",)),
    ("imports", ("lint-imports", "--no-cache")),
    ("models", ("python", "manage.py", "makemigrations", "--check", "--dry-run")),
)
CLIENT = "scripts.write_client"
"""A copy has none, and the schema loses what a feature had there."""
PYTEST = ("python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
SHAPE = ("tests/test_structure.py", "tests/test_words.py")
SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the product did without a feature."""

    feature: Feature
    num_lines: int
    """Of Python that went with it, tests included."""
    failure: str
    """The first check that failed, with the end of its output; "" when all passed."""
    wall_s: float


def main() -> int:
    options = parse()
    chosen = list(chosen_features(options))
    if not chosen:
        sys.exit(f"--feature {options.feature}: there are {', '.join(one.title for one in features())}")
    with tempfile.TemporaryDirectory(prefix="deletable-") as folder:
        tree = ProductCopy(Path(folder) / "tree")
        outcomes = [
            report(outcome)
            for outcome in (without(one, tree, has_tests=not options.sample) for one in chosen)
        ]
    failed = [outcome for outcome in outcomes if outcome.failure]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} features can be deleted")
    return int(bool(failed))


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = arguments.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="every feature")
    which.add_argument("--feature", help="the features whose folder ends so")
    which.add_argument("--sample", action="store_true", help="one feature, without the tests of its room")
    return arguments.parse_args()


def chosen_features(options: argparse.Namespace) -> Iterator[Feature]:
    found = list(features())
    if options.sample:
        count = ["git", "rev-list", "--count", "HEAD"]
        number = int(subprocess.check_output(count, cwd=REPOSITORY, text=True))
        yield found[number % len(found)]
    else:
        yield from (one for one in found if one.title.endswith(options.feature or ""))


def without(feature: Feature, tree: ProductCopy, *, has_tests: bool) -> Outcome:
    began = time.monotonic()
    num_lines = tree.delete(feature)
    failure = first_failure(feature, tree, feature.room.tests if has_tests else ())
    tree.restore()
    return Outcome(feature, num_lines, failure, time.monotonic() - began)


def first_failure(feature: Feature, tree: ProductCopy, room_tests: tuple[str, ...]) -> str:
    if named := tree.files_that_name(feature):
        return f"named elsewhere: {', '.join(named)}"
    regenerate = [
        ("generated files", ("python", "-m", module)) for module in (*feature.room.regenerates, CLIENT)
    ]
    tests = (*PYTEST, *tree.existing((*SHAPE, *room_tests)))
    for name, command in (*regenerate, *CHECKS, ("tests", tests)):
        if output := tree.failure_of(command):
            return f"{name}:\n{output[-SHOWN_CHARACTERS:]}"
    return ""


def report(outcome: Outcome) -> Outcome:
    verdict = "FAILED" if outcome.failure else "ok"
    print(
        f"{verdict:6} {outcome.feature.title:44} {outcome.num_lines:5} lines  {outcome.wall_s:4.0f} s",
        flush=True,
    )
    if outcome.failure:
        print(outcome.failure, flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
