"""Does any test fail once a change is planted? In copies of the tree, several beside each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.mutants.kept_database import VARIABLE
from scripts.mutants.planted import BadList, Plant
from scripts.mutants.tree_copy import TreeCopy

LIMIT_S = 600
"""Of tests without a change; with one they are given three times as long as without, and at least this."""
LEAST_LIMIT_S = 120.0
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
GREEN, RED = 0, 1


class Verdict(NamedTuple):
    """What the tests said of a change on one database."""

    outcome: str
    """killed, timeout, or survived."""
    by: str
    """The test that failed first."""
    seconds: float


class Bench:
    """A copy of the tree with its own pytest, for one thread."""

    def __init__(self, folder: Path, database: Path, greens: Greens) -> None:
        folder.mkdir()
        self.copy = TreeCopy(folder)
        self._greens = greens
        self._output = folder.with_suffix(".txt")
        environment = os.environ | {VARIABLE: str(database), "OMP_NUM_THREADS": "1"}
        environment["PYTHONDONTWRITEBYTECODE"] = ""  # nothing is compiled twice
        environment.pop("DJANGO_SETTINGS_MODULE", None)  # a test session's would load the product
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.mutants.warm_pytest"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def judge(self, plant: Plant, database: str, *, is_wide: bool) -> Verdict:
        """By its own tests, file by file, then, when `is_wide`, by those of its room. Raises BadList."""
        spent = 0.0
        for tests in (*((one,) for one in plant.tests), *((plant.room,) if is_wide else ())):
            usual_s = self._greens.require(self, tests, database)
            with self.copy.with_change(plant):
                status, seconds = self.run(tests, database, max(LEAST_LIMIT_S, 3 * usual_s))
            spent += seconds
            if status is None:
                return Verdict("timeout", " ".join(tests), spent)
            if status == RED:
                return Verdict("killed", self.failed(), spent)
            if status != GREEN:
                where = f"{plant.area}.toml, {plant.path}, {plant.shown!r}"
                raise BadList(f"{where}: pytest ended with {status}: {self.tail()}")
        return Verdict("survived", "", spent)

    def run(self, tests: Sequence[str], database: str, limit_s: float) -> tuple[int | None, float]:
        """pytest's exit status, None beyond the limit, and the seconds that it took."""
        request: dict[str, Any] = {"tests": list(tests), "output": str(self._output), "limit_s": limit_s}
        request["environment"] = {"DESKHAND_TEST_DB": database}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["status"], answer["seconds"]

    def failed(self) -> str:
        """The first test that the last run names."""
        found = FAILED.search(self._output.read_text(errors="replace"))
        return found[1] if found else ""

    def tail(self) -> str:
        return self._output.read_text(errors="replace")[-2000:]

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


class Greens:
    """Tests that pass without a change: without that, a failure says nothing."""

    def __init__(self) -> None:
        self._locks: dict[tuple[tuple[str, ...], str], threading.Lock] = defaultdict(threading.Lock)
        self._seconds: dict[tuple[tuple[str, ...], str], float] = {}

    def require(self, bench: Bench, tests: tuple[str, ...], database: str) -> float:
        """The seconds that they take; tried once. Raises BadList when they fail."""
        key = (tests, database)
        with self._locks[key]:
            if key not in self._seconds:
                status, seconds = bench.run(tests, database, LIMIT_S)
                if status != GREEN:
                    raise BadList(f"{' '.join(tests)} on {database} without any change: {bench.tail()}")
                self._seconds[key] = seconds
            return self._seconds[key]
