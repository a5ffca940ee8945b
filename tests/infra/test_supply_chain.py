"""What is installed: known by its hashes, under known licences, and asked for advisories."""

import importlib
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from testing.paths import REPOSITORY
from testing.servers.answering import Answer, answering

SCRIPTS = REPOSITORY / "scripts"
NOWHERE = "http://127.0.0.1:9"  # the port "discard", which is closed


@pytest.fixture
def script(monkeypatch):
    """A module of scripts/, as the scripts import each other."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


def test_every_pin_has_the_hashes_of_its_files_and_nothing_else_has(script):
    files = script("requirement_files")
    for name in files.HASHED_NAMES:
        pins = {pin for pin in files.pins_of(name).items() if pin[0] not in files.UNHASHED}
        hashed = files.hashes_of(name)
        assert pins == set(hashed), f"run scripts/hash_requirements.py: {name}"
        assert [pin for pin, hashes in hashed.items() if not hashes] == []


def test_what_brings_more_along_has_the_hashes_of_all_that_and_agrees_with_our_pins(script):
    files = script("requirement_files")
    ours = files.pins_of("base")
    for name in files.RESOLVED_NAMES:
        hashed = files.hashes_of(name)
        assert files.resolved_from(name).items() <= hashed.keys(), f"run scripts/hash_requirements.py: {name}"
        assert [pin for pin, hashes in hashed.items() if not hashes] == []
    cuda = dict(files.hashes_of("torch-cuda"))
    assert {"nvidia-nccl-cu13", "triton"} < {pin for pin, _ in cuda}, "what a GPU needs is among them"
    assert {pin for pin, _ in cuda} & set(ours) == {"torch"}, "the rest is installed before it"


def test_what_no_hash_stands_for_is_torchs_cpu_build_alone(script):
    assert {"torch", "torchvision"} == script("requirement_files").UNHASHED


@pytest.mark.parametrize("cpu_build", [[], None], ids=["CPU build in reach", "PyPI's build"])
def test_the_set_up_installs_by_hash_before_anything_else(script, monkeypatch, cpu_build):
    setup_python, commands = script("setup_python"), []
    monkeypatch.setattr(setup_python, "run", lambda command, *_, **__: commands.append(command))
    monkeypatch.setattr(setup_python, "is_done", lambda *_: False)
    monkeypatch.setattr(setup_python, "mark_done", lambda *_: None)
    monkeypatch.setattr(setup_python, "cpu_torch_options", lambda: cpu_build)
    setup_python.install_python(with_tests=True)
    first, *rest = [command for command in commands if "install" in command]
    assert {"--require-hashes", "--no-deps"} < set(first)
    assert first[first.index("-r") + 1] == str(REPOSITORY / "requirements" / "hashed" / "dev.txt")
    assert len(rest) == 1
    assert ("--require-hashes" in rest[0]) is (cpu_build is None)


def test_pip_refuses_a_file_that_is_not_the_one_that_was_pinned(tmp_path):
    """What the whole set-up relies on, tried with a package of our own."""
    wheel = tmp_path / "deskhand_probe-1.0-py3-none-any.whl"
    wheel.write_bytes(b"not what was pinned")
    pins = tmp_path / "pins.txt"
    pins.write_text(f"deskhand-probe==1.0 --hash=sha256:{'0' * 64}\n")
    asked = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-index"]
    answer = subprocess.run(
        [*asked, "--find-links", str(tmp_path), "-d", str(tmp_path / "out"), "-r", str(pins)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert answer.returncode == 1
    assert "DO NOT MATCH THE HASHES" in answer.stderr


def test_the_list_of_licences_is_current_and_knows_them_all(script):
    licences = script("list_licences")
    assert licences.PAGE.read_text() == licences.page(), "run scripts/list_licences.py"
    rows = [*licences.python_rows(), *licences.npm_rows()]
    assert {row[0] for row in rows if licences.unknown(row[2])} == set(licences.EXCEPTIONS)


def test_a_licence_that_nobody_allowed_is_found(script):
    licences = script("list_licences")
    assert licences.unknown("MIT AND (Apache-2.0 OR BSD-3-Clause)") == []
    assert licences.unknown("MIT AND GPL-3.0-only") == ["GPL-3.0-only"]
    assert licences.unknown("none named") == ["none", "named"]


# --- advisories --------------------------------------------------------------------------------------


@contextmanager
def registry(vulnerable):
    """PyPI's answers to GET, npm's to POST; yields the environment that names it."""

    def answer(request):
        if request.method == "GET":
            _, name, version, _ = request.path.split("/")
            found = [{"id": "PYSEC-1", "summary": "bad", "fixed_in": ["9.9"], "withdrawn": None}]
            said = {"vulnerabilities": found if name == vulnerable else []}
        else:
            found = {"id": 7, "url": "https://a/7", "title": "bad", "vulnerable_versions": "<9"}
            said = {vulnerable: [found]} if vulnerable in json.loads(request.body) else {}
        return Answer(json.dumps(said).encode())

    with answering(answer) as url:
        yield {"DESKHAND_CHECK_PYPI": url, "DESKHAND_CHECK_NPM": url}


def check(environment):
    command = [sys.executable, str(SCRIPTS / "check_advisories.py")]
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("vulnerable", "said"),
    [("django", "django==5.2.19: PYSEC-1 bad (fixed in 9.9)"), ("idiomorph", "idiomorph: https://a/7 bad")],
)
def test_a_vulnerable_version_fails_the_check_and_is_named(vulnerable, said):
    with registry(vulnerable) as environment:
        answer = check(environment)
    assert answer.returncode == 1
    assert said in answer.stderr


def test_without_a_vulnerability_the_check_passes():
    with registry("none") as environment:
        answer = check(environment)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == "advisories of PyPI are checked\nadvisories of npm are checked\n"


def test_a_registry_that_cannot_be_asked_is_said_so_and_passes():
    answer = check({"DESKHAND_CHECK_PYPI": NOWHERE, "DESKHAND_CHECK_NPM": NOWHERE})
    assert answer.returncode == 0
    assert "advisories of PyPI are not checked: " in answer.stdout
    assert "advisories of npm are not checked: " in answer.stdout
