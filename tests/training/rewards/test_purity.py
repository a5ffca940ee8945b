"""A reward is a function of turns and score: no clock, no dice, no file, no network, no hash order."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import training.rewards

ROOM = Path(training.rewards.__file__).parent
PURE_MODULES = {
    "__future__", "math", "itertools", "typing", "dataclasses", "collections.abc", "functools", "re",
    "cel_expr_python", "cel_expr_python.ext",  # a language without clock, dice or files
}  # fmt: skip
OWN_MODULES = (
    "training.contracts.types", "training.contracts.milestone", "training.contracts.observed_text",
    "training.contracts.config.reward_presets", "training.contracts.config.algorithm",
    "training.contracts.outcome", "training.rewards",
)  # fmt: skip
IMPURE_NAMES = {
    "__import__", "__builtins__", "breakpoint", "compile", "eval", "exec", "getattr", "globals", "hash", "id",
    "input", "locals", "open", "vars",
}  # fmt: skip


def impurities(source: str) -> Iterator[str]:
    """Imports of anything but the modules above, wherever they stand, and ways around an import."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if not is_pure(name.name))
            case ast.ImportFrom(module=module, level=level) if level or not is_pure(module or ""):
                yield module or "."
            case ast.Name(id=name) if name in IMPURE_NAMES:
                yield name
            case ast.Attribute(attr=name) if name.startswith("__"):
                yield name


def is_pure(module: str) -> bool:
    return module in PURE_MODULES or any(module == own or module.startswith(own + ".") for own in OWN_MODULES)


@pytest.mark.parametrize("file", sorted(ROOM.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOM)))
def test_no_term_reads_a_clock_or_rolls_dice(file):
    assert list(impurities(file.read_text())) == []


@pytest.mark.parametrize(
    "violation",
    [
        "import time",
        "import os.path",
        "from random import random",
        "from datetime import datetime as now",
        "def term(trajectory):\n    from time import monotonic\n    return monotonic()",
        "def term(trajectory):\n    if trajectory:\n        import secrets",
        "from training.contracts import secrets",
        "from . import clock",
        "value = __import__('time').time()",
        "value = open('/proc/uptime').read()",
        "value = hash('fox')",
        "value = math.__loader__.load_module('time')",
        "value = ().__class__.__base__.__subclasses__()",
    ],
)
def test_a_planted_violation_is_found(violation):
    term = (ROOM / "terms" / "outcome.py").read_text()
    assert list(impurities(f"{term}\n{violation}\n"))
