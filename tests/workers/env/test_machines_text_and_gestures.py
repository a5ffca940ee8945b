"""On a real virtual machine: a policy that reads only text, and a person's held keys, solve their tasks."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.desk_host_process import running_host
from testing.workers.slot_thread import slot_thread
from tests.workers.conftest import ROOT
from tests.workers.env.test_text_policy import PROMPT, policy, run_one
from tests.workers.tasks.test_demonstrated_gestures import TASK, replayed, solve_by_hand
from training.contracts.types import Action
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.texts import read_text
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient, LeaseKeeper
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks import prepare_and_score

IMAGES = Path(os.environ.get("DESKHAND_IMAGES_DIR") or ROOT / "var" / "images")
TEMPLATES = os.environ.get("DESKHAND_TEMPLATES_DIR")
is_missing = not (IMAGES / "debian-desk" / "image.json").exists() or not shutil.which("qemu-system-x86_64")
pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        is_missing, reason="VIRTUAL MACHINES ARE NOT TESTED: no QEMU or no guest image; make guest-image"
    ),
]
HELD = """
from Xlib.display import Display
display = Display()
keys = sum(bin(bits).count("1") for bits in display.query_keymap())
print(keys, display.screen().root.query_pointer().mask & 0x1F00)
"""
__all__ = ["policy"]


@pytest.fixture(scope="module")
def machines() -> Iterator[DeskHostClient]:
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    places = ("--images", str(IMAGES), "--templates", TEMPLATES or str(folder / "templates"))
    with running_host(folder, *places, "--warm-limit", "0") as client:
        yield client
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def machine_slot(machines: DeskHostClient, settings, tmp_path) -> Iterator[None]:
    """Runs every queued trajectory on machines, as an env worker's slot does."""
    settings.DESKHOST_SOCKET = machines.socket_path
    settings.MEDIA_ROOT = str(tmp_path)
    with slot_thread(patience_s=120):
        yield


@pytest.mark.django_db(transaction=True)
def test_a_policy_that_reads_only_text_solves_its_task(transactional_db, machine_slot, policy):
    url, requests = policy
    row = run_one(url, PROMPT, provider="qemu", patience_s=900)
    assert (row.status, row.score, row.error) == ("terminated", 1.0, "")
    assert not any(b"PNG" in body for body in requests)
    first, last = trajectory_of(row).turns[0], trajectory_of(row).turns[-1]
    assert 'push-button "Crimson"' in first.observation.text
    assert "Crimson" not in last.observation.text
    assert first.observation.accessibility is not None
    assert 'name="Crimson"' in read_text(first.observation.accessibility.sha256)


@pytest.fixture
def machine(machines: DeskHostClient) -> Iterator[DesktopEnv]:
    lease = machines.acquire("qemu", DesktopSpec(width=512, height=384), holder="gestures", ttl_s=120)
    with DesktopEnv(machines, lease) as env, LeaseKeeper(machines, lease):
        env.reset()
        yield env


def held(machine: DesktopEnv) -> tuple[int, int]:
    """As `tests.workers.desktops.x11.test_held_input.down`, from inside."""
    answer = machine.agent.ask("/execute", {"command": ["python3", "-c", HELD]}, timeout_s=60)
    keys, buttons = str(answer["output"]).split()
    return int(keys), int(buttons)


def test_recorded_gestures_solve_their_task_on_a_fresh_machine(machine):
    prepare_and_score.setup(TASK, machine)
    actions = solve_by_hand(machine, slower=4)
    assert prepare_and_score.evaluate(TASK, machine, None) == 1.0, machine.agent.get("~/found.json")
    kinds = [(action.kind.value, action.modifiers, action.seconds > 1) for action in actions]
    assert kinds == [
        ("click", (), False),
        ("click", ("ctrl",), False),
        ("drag", ("shift",), False),
        ("key", (), True),
    ]
    assert replayed(machine, actions, held) == 1.0
    as_before = [action.model_copy(update={"modifiers": (), "seconds": 0.0}) for action in actions]
    assert replayed(machine, as_before, held) == 0.0
    by_hand = [Action(kind="key_down", keys=("ctrl",)), actions[1].model_copy(update={"modifiers": ()})]
    by_hand += [Action(kind="key_up", keys=("ctrl",)), Action(kind="mouse_up")]
    assert replayed(machine, [actions[0], *by_hand, *actions[2:]], held) == 1.0
