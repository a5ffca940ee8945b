"""What importing a module loads, seen in a fresh interpreter: workers and pages stay free of torch."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@cache
def loaded_by(module: str) -> set[str]:
    """Top-level names of all modules that are loaded after importing this one alone."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module", ["training.contracts.types", "training.contracts.config", "webapp.asgi", "workers.jobs"]
)
def test_importing_it_does_not_load_torch(module):
    assert loaded_by(module) & {"torch", "transformers"} == set()


@pytest.mark.parametrize(
    "module", ["training.contracts.types", "training.contracts.config", "training.update.learner"]
)
def test_training_does_not_load_the_web_framework_or_the_job_queue(module):
    assert loaded_by(module) & {"django", "celery", "channels", "webapp", "workers"} == set()


def test_the_web_process_does_not_load_the_workers():
    assert "workers" not in loaded_by("webapp.asgi")


def test_jobs_that_the_web_application_sends_by_name_are_registered():
    program = "from workers.app import app; app.loader.import_default_modules(); print(*app.tasks)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    sources = [file.read_text() for file in (REPOSITORY / "webapp").rglob("*.py")]
    sent = set().union(*(re.findall(r"[\"'](workers\.jobs\.\w+)[\"']", source) for source in sources))
    assert sent
    assert sent <= set(done.stdout.split())


@pytest.mark.parametrize(
    ("folder", "others"),
    [("tests", "benchmarks"), ("testing", "benchmarks"), ("benchmarks", "tests"), ("testing", "tests")],
)
def test_what_tests_and_benchmarks_share_lies_in_testing(folder, others):
    wanted = re.compile(rf"^\s*(?:from|import) {others}\b", re.MULTILINE)
    tests_of_benchmarks = REPOSITORY / "tests" / "benchmarks"
    sources = [f for f in (REPOSITORY / folder).rglob("*.py") if tests_of_benchmarks not in f.parents]
    assert sources
    assert [str(file) for file in sources if wanted.search(file.read_text())] == []


def test_tests_of_training_are_collected_without_the_web_framework_and_the_job_queue():
    program = """
import sys, pytest
sys.modules |= dict.fromkeys(("django", "celery", "channels", "redis"))  # None: an import of it fails
sys.exit(pytest.main(["tests/training", "--collect-only", "-q", "-p", "no:django", "-p", "no:playwright"]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
