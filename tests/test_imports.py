"""What importing a module loads, seen in a fresh interpreter: workers and pages stay free of torch."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def loaded_by(module: str) -> set[str]:
    """Top-level names of all modules that are loaded after importing this one alone."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["training.types", "training.config", "webapp.asgi", "workers.jobs"])
def test_importing_it_does_not_load_torch(module):
    assert loaded_by(module) & {"torch", "transformers"} == set()


@pytest.mark.parametrize("module", ["training.types", "training.config", "training.trainer"])
def test_training_does_not_load_the_web_framework_or_the_job_queue(module):
    assert loaded_by(module) & {"django", "celery", "channels", "webapp", "workers"} == set()


def test_the_web_process_does_not_load_the_workers():
    assert "workers" not in loaded_by("webapp.asgi")


def training_imports(file: Path) -> set[str]:
    """Modules of `training` that a source file imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = node.module == "training"
            found |= {f"training.{name.name}" for name in node.names} if whole else {node.module}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found if name.split(".")[0] == "training"}


def test_the_web_application_imports_only_the_torch_free_part_of_training():
    imported = set().union(*(training_imports(file) for file in (REPOSITORY / "webapp").rglob("*.py")))
    # Presets and task sets are data in terms of types and config; their readers import nothing else of
    # training, and a fresh interpreter shows above that no torch comes with them.
    readers = {name for name in imported if name.split(".")[1] in ("presets", "tasks")}
    # The config's sections have files of their own, config_*.py; importing the config imports them all.
    sections = {name for name in imported if name.startswith("training.config")}
    # What a config will need: figures and the names of secrets, for the launch page.
    needs = {"training.footprint", "training.scales", "training.secrets"}
    assert imported - readers - sections - needs <= {"training.types"}


def test_jobs_that_the_web_application_sends_by_name_are_registered():
    program = "from workers.app import app; app.loader.import_default_modules(); print(*app.tasks)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    sources = [file.read_text() for file in (REPOSITORY / "webapp").rglob("*.py")]
    sent = set().union(*(re.findall(r"[\"'](workers\.jobs\.\w+)[\"']", source) for source in sources))
    assert sent
    assert sent <= set(done.stdout.split())
