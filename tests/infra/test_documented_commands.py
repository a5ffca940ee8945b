"""Each command of README and docs runs as written: executed where it can be, else held against its parser."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from deskhand_client.cli.main import main as deskhand
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from testing.documented_commands import Documented, commands_of, documented_commands, documents
from testing.factories import make_team
from testing.paths import REPOSITORY
from webapp.experiments.models import Experiment

COMMANDS = documented_commands()
PYTHON = ".venv/bin/python"
FOREIGN = {
    **dict.fromkeys(("pip", "docker", "openssl", "cp", "install", "systemctl", "$EDITOR"), "of the system"),
    "kubectl": "of Kubernetes",
    **dict.fromkeys(("qemu-img", "qemu-system-x86_64", "mmdebstrap"), "of Debian"),
    **dict.fromkeys((".venv/bin/pip", ".venv/bin/hf", ".venv/bin/pre-commit"), "of a package"),
    ".venv-sglang/bin/python": "of `make sglang-env`",
    **dict.fromkeys(("deploy/make-env", "deploy/kubernetes/make-secrets"), "of the repository"),
    ".venv-osworld/bin/python": "of `make osworld-env`",
    "wandb": "of Weights & Biases",
}
"""Programs that are not ours."""
BRACKETS = re.compile(r"\[([^\]]*)\]")
"""What may be left out."""


def of(*programs: str) -> list[Documented]:
    return [found for found in COMMANDS if found.words[0] in programs]


def ids(found: list[Documented]) -> list[str]:
    return [str(one) for one in found]


def test_every_block_says_what_it_holds():
    bare = [
        f"{name}:{number}"
        for name in documents()
        for number, line in enumerate((REPOSITORY / name).read_text().splitlines(), 1)
        if line.strip() == "```" and _opens(name, number)
    ]
    assert bare == [], "a block is sh, python, json, yaml or text"


def _opens(name: str, number: int) -> bool:
    before = (REPOSITORY / name).read_text().splitlines()[: number - 1]
    return sum(line.strip().startswith("```") for line in before) % 2 == 0


def test_every_program_is_known():
    """A bare `python` or `manage.py` does not run on Debian, from a clean clone."""
    known = {PYTHON, "make", "deskhand", *FOREIGN}
    assert ids([found for found in COMMANDS if found.words[0] not in known]) == []


def test_commands_are_found():
    page = (
        "`make up` and `manage.py doctor`, `var/x`\n\n"
        "```sh\nmake a && b c   # d\na > f | \\\n  b\n```\n```json\n{}\n```\n"
    )
    assert [(found.place, found.text, found.is_fenced) for found in commands_of("x.md", page)] == [
        ("x.md:4", "make a", True),
        ("x.md:4", "b c", True),
        ("x.md:5", "a", True),
        ("x.md:5", "b", True),
        ("x.md:1", "make up", False),
        ("x.md:1", "manage.py doctor", False),
    ]
    assert len(COMMANDS) > 100


def test_every_target_of_make_is_there():
    targets = set(re.findall(r"^([a-z0-9-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    used = {word for found in of("make") for word in found.words[1:] if "=" not in word}
    assert used - targets == set()


OURS = [found for found in of(PYTHON) if found.words[1] == "manage.py"]


def arguments(found: Documented) -> list[str]:
    """With what may be left out; N and ID stand for numbers."""
    text = BRACKETS.sub(r"\1", found.text)
    words = Documented(found.place, text, found.is_fenced).words[3:]
    return ["3" if word in ("N", "ID", "CHECKPOINT") else word for word in words]


@pytest.mark.parametrize("found", OURS, ids=ids(OURS))
def test_a_command_of_manage_is_understood(found, capsys):
    name = found.words[2]
    assert name in get_commands(), f"manage.py has no command {name}"
    if not found.is_fenced and len(found.words) == 3:
        return  # its name alone
    parser = command_of(name).create_parser("manage.py", name)
    try:
        parser.parse_args(arguments(found))
    except (CommandError, SystemExit) as error:
        pytest.fail(f"{error} {capsys.readouterr().err}")


def command_of(name: str) -> BaseCommand:
    app = get_commands()[name]
    return app if isinstance(app, BaseCommand) else load_command_class(app, name)


MODULES = [
    found
    for found in of(PYTHON)
    if found.words[1] not in ("manage.py", "-c") and found.words[1:3] != ["-m", "pytest"]
]


def source_of(found: Documented) -> tuple[str, list[str]]:
    """(the file's text, the words behind it) of `-m MODULE ...` or of a script."""
    if found.words[1] != "-m":
        return (REPOSITORY / found.words[1]).read_text(), found.words[2:]
    name = found.words[2]
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations:
        spec = importlib.util.find_spec(f"{name}.__main__")
    assert spec is not None, f"there is no module {name}"
    assert spec.origin, f"{name} has no file"
    path = Path(spec.origin)
    options = path.with_name(f"{path.stem}_options.py")  # of modules that have many
    return path.read_text() + (options.read_text() if options.exists() else ""), found.words[3:]


@pytest.mark.parametrize("found", MODULES, ids=ids(MODULES))
def test_a_module_or_script_is_there_and_has_the_options(found):
    source, words = source_of(found)
    options = {word.strip("[]").partition("=")[0] for word in words if word.strip("[").startswith("--")}
    inner = words.index("-m") if "-m" in words else len(words)  # what the ranks run has its own
    options &= {word.strip("[]").partition("=")[0] for word in words[:inner]}
    missing = {option for option in options if f'"{option}"' not in source}
    assert missing == set(), "these are read nowhere in it"


def program_of(found: Documented) -> tuple[str, ...]:
    """`-m MODULE`, or the script."""
    return tuple(found.words[1 : 3 if found.words[1] == "-m" else 2])


WITH_OPTIONS = sorted({program_of(found) for found in MODULES if "ArgumentParser" in source_of(found)[0]})
"""Others take none: with `--help` they would do their work."""


@pytest.mark.slow
@pytest.mark.parametrize("program", WITH_OPTIONS, ids=" ".join)
def test_a_module_or_script_answers_help(program):
    command = [sys.executable, *program, "--help"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


CLIENT = of("deskhand")


@pytest.mark.parametrize("found", CLIENT, ids=ids(CLIENT))
def test_a_command_of_the_client_is_understood(found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, command = list(found.words), deskhand
    while isinstance(command, click.Group):
        words.pop(0)
        if not words:
            return
        command = command.get_command(click.Context(command), words[0])
        assert command is not None, f"deskhand has no {words[0]}"
    for word in words[1:]:
        if Path(word).suffix in (".jsonl", ".yaml", ".parquet") and not word.startswith("-"):
            Path(word).touch()
    if found.is_fenced or len(words) > 1:
        command.make_context(words[0], words[1:])


def test_files_that_pip_installs_are_there():
    for found in of("pip", ".venv/bin/pip"):
        for option, file in zip(found.words, found.words[1:], strict=False):
            if option == "-r":
                assert (REPOSITORY / file).is_file(), str(found)
            elif file.partition("[")[0].endswith("deploy/client"):
                assert (REPOSITORY / file.partition("[")[0] / "pyproject.toml").is_file(), str(found)


def test_what_compose_is_asked_for_is_there():
    compose = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    profiles = {name for service in compose["services"].values() for name in service.get("profiles", ())}
    for found in of("docker"):
        words = found.words[2:]
        if "--profile" in words:
            assert words.pop(words.index("--profile") + 1) in profiles, str(found)
        named = [word for word in words if not word.startswith("-")]
        # What `exec` runs behind the service's name is no service; `cp` names one before a colon.
        is_one = named and named[0] in ("exec", "run", "cp")
        named = [named[1].partition(":")[0]] if is_one else named[1:]
        assert set(named) <= compose["services"].keys() | {"d"}, str(found)


FOLDERS = ("deploy/", "requirements/", "scripts/", "docs/", "benchmarks/", "training/")


def test_files_of_the_repository_are_there():
    for found in COMMANDS:
        for word in found.words:
            if word.startswith(FOLDERS) and "[" not in word:
                assert (REPOSITORY / word).exists(), str(found)


NEEDS_MORE = re.compile(r"~|evaluate|export|--with")
"""Files of people, and checkpoints that a run has to write first."""
RUNS_HERE = [
    found
    for found in OURS
    if found.is_fenced
    and found.words[2] in ("launch", "experiment", "doctor", "import_tasks", "grant_secret")
    and not NEEDS_MORE.search(found.text)
]


@pytest.mark.django_db
@pytest.mark.parametrize("document", sorted({found.place.partition(":")[0] for found in RUNS_HERE}))
def test_what_can_run_here_runs_in_the_order_of_its_page(document, tmp_path, settings, capsys):
    """On the database of a first `make up`: its team and its task set."""
    settings.EXPERIMENTS_DIR = tmp_path
    settings.SECRETS_DIR = tmp_path
    make_team("home")
    make_team("TEAM")
    call_command("import_tasks", "first-desk")
    for found in RUNS_HERE:
        if found.place.startswith(f"{document}:"):
            words = found.words[2:]
            if words[0] == "experiment":
                words[1] = str(Experiment.objects.earliest("pk").pk)
            call_command(*words)
    assert capsys.readouterr().out


def test_a_key_for_webhooks_is_made_as_documented(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    page = (REPOSITORY / "docs/operations.md").read_text()
    (line,) = re.findall(r"^openssl .*", page, re.MULTILINE)
    (tmp_path / "var/secrets").mkdir(parents=True)
    subprocess.run(line, shell=True, cwd=tmp_path, check=True)
    (key,) = (tmp_path / "var/secrets").iterdir()
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_text().strip()
