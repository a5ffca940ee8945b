"""Provider windows on a Linux guest with a Windows guest's hardware, driven by QEMU's monitor alone.

No Windows can be had here. The guest has no program that takes input for us: its text console is logged
into and typed on through PS/2 keys. It takes about 5 CPU seconds to boot; all tests share one template.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.desk_host_process import running_host
from testing.workers import keyboard_guest
from training.actions.parse_completion import parse_completion
from training.contracts.types import Action
from training.outgoing.secret_store import variable_of
from workers.desktops.contract import DesktopSpec, EnvError, ErrorKind
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.windows.iso_disc import make_disc
from workers.tasks.prepare_and_score import judge_by

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]
SCREEN = (720, 400)
"""A VGA text console."""
SPEC = DesktopSpec(width=SCREEN[0], height=SCREEN[1], memory_mb=256, image="keyboard-guest")
SECRET = "keyboard-guest"
STEPS = [f"typeline {keyboard_guest.USER}", "wait 2", "password", "sendkey ret"]
CHECK = ["/bin/sh", "-c", f"who | grep -q {keyboard_guest.USER}"]
PRINTABLE = "".join(map(chr, range(33, 127)))


@pytest.fixture(scope="module")
def password() -> str:
    """New in every run, with letters of every kind, so that a search for it proves something."""
    return f"Zx-{secrets.token_hex(6)}-{{Q}}!"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def host(place: Path, password: str) -> Iterator[DeskHostClient]:
    """A desk host with the guest registered and its password in the secret store."""
    keyboard_guest.publish(
        place / "images", "keyboard-guest", password, {"secret": SECRET, "steps": STEPS, "check": CHECK}
    )
    wrong = {"secret": "wrong-one", "steps": STEPS, "check": CHECK, "limit_s": 8}
    keyboard_guest.publish(place / "images", "locked-guest", password, wrong)
    store = place / "secrets"
    store.mkdir(mode=0o700)
    for name, value in ((SECRET, password), ("wrong-one", "not-" + password)):
        (store / name).touch(0o600)
        (store / name).write_text(value)
    (place / "host").mkdir()
    folders = ["--images", str(place / "images"), "--templates", str(place / "templates")]
    before = os.environ.get("DESKHAND_DATA_DIR")
    os.environ["DESKHAND_DATA_DIR"] = str(place)
    try:
        with running_host(place / "host", "--max-desktops", "3", *folders) as client:
            yield client
    finally:
        if before is None:
            del os.environ["DESKHAND_DATA_DIR"]
        else:
            os.environ["DESKHAND_DATA_DIR"] = before


@pytest.fixture
def guest(host: DeskHostClient) -> Iterator[DesktopEnv]:
    """A logged-in clone."""
    lease = host.acquire("windows", SPEC, holder="tests", ttl_s=900)
    with DesktopEnv(host, lease) as env:
        env.reset()
        yield env


def say(env: DesktopEnv, command: str) -> None:
    """What a policy of the keyboard dialect would write."""
    parsed = parse_completion(f"<action>{command}</action>", dialect="keyboard", screen=SCREEN)
    assert parsed.action is not None, parsed.error
    env.act(parsed.action)


def file_of(env: DesktopEnv, path: str) -> bytes | None:
    """A file's content, waiting for the shell to write it."""
    script = f"n=0; until grep -q . {path} 2>/dev/null || [ $n -ge 200 ]; do sleep 0.1; n=$((n+1)); done"
    env.agent.execute(script, shell=True, timeout_s=60)
    return env.agent.get(path)


def test_a_clone_wakes_up_logged_in_and_takes_every_key(guest):
    assert guest.agent.platform == "linux"
    assert keyboard_guest.USER in guest.agent.execute(["who"]).output
    first = guest.observe()
    assert (first.width, first.height) == SCREEN
    say(guest, "typeline cat > keys.txt")
    for _ in range(3):
        say(guest, f"typeline {PRINTABLE}")
    say(guest, "sendkey ctrl-d")
    assert guest.observe().sha256 != first.sha256
    assert file_of(guest, "/home/operator/keys.txt") == 3 * (PRINTABLE.encode() + b"\n")


def test_a_reset_leaves_nothing_of_the_trajectory_before(guest):
    say(guest, "typeline echo mine > left.txt")
    assert file_of(guest, "/home/operator/left.txt") == b"mine\n"
    before = guest.observe().sha256
    guest.reset()
    assert guest.agent.get("/home/operator/left.txt") is None
    assert guest.observe().sha256 != before
    assert keyboard_guest.USER in guest.agent.execute(["who"]).output


def test_a_tasks_setup_runs_once_and_is_cloned(guest):
    """The keyboard, the disc drive and the agent's port go on working in a clone of a clone."""
    ran = []

    def setup() -> None:
        ran.append(guest.agent.execute("date +%N > /tmp/setup; cat /tmp/setup", shell=True).output)

    assert not guest.prepare("keys-setup", setup)
    guest.reset()
    assert guest.prepare("keys-setup", setup)
    assert (guest.agent.get("/tmp/setup") or b"").decode() == ran[0]
    assert len(ran) == 1
    say(guest, "typeline cat /tmp/setup > again.txt")
    assert file_of(guest, "/home/operator/again.txt") == ran[0].encode()


def test_a_machine_goes_on_from_a_snapshot_of_it(host, guest):
    """Disk, memory, keyboard and the agent's port, all as they were."""
    say(guest, "typeline echo kept > kept.txt; exec 3< kept.txt")
    assert file_of(guest, "/home/operator/kept.txt") == b"kept\n"
    kept = guest.snapshot("plain hardware")
    say(guest, "typeline rm kept.txt; echo late > late.txt")
    assert file_of(guest, "/home/operator/late.txt") == b"late\n"
    guest.wake(kept.name)
    assert guest.agent.get("/home/operator/kept.txt") == b"kept\n"
    assert guest.agent.get("/home/operator/late.txt") is None
    say(guest, "typeline cat <&3 > again.txt")  # the shell still holds the file that it opened before
    assert file_of(guest, "/home/operator/again.txt") == b"kept\n"
    assert host.drop_snapshots([kept.name]) == 1


def test_files_come_in_by_disc_and_go_out_by_the_agent(guest):
    content = bytes(range(256)) * 40
    guest.console.insert_disc(make_disc({"Task Files/data one.bin": content}))
    read = "mount -t iso9660 /dev/sr0 /mnt && cp '/mnt/Task Files/data one.bin' /tmp/in; umount /mnt"
    result = guest.agent.execute(read, shell=True)
    assert result.returncode == 0, result.error
    assert guest.agent.get("/tmp/in") == content
    guest.console.insert_disc(b"")
    assert guest.agent.execute("mount -t iso9660 /dev/sr0 /mnt", shell=True).returncode != 0


def test_a_task_is_solved_by_keys_alone_and_scored_through_the_agent(guest):
    """Partial credit on the way, as the keyboard tasks give it."""

    def part(func: str, getter: dict, **rules: object) -> float:
        evaluator = {"func": func, "result": getter, "expected": {"type": "rule", "rules": rules}}
        return judge_by(evaluator | {"wait_s": 20.0 if rules.pop("wait", False) else 0.0}, guest).score

    folder = {"type": "guest_files", "folder": "/home/operator/work"}
    note = {"type": "vm_file", "path": "/home/operator/work/done/plan.txt"}
    assert part("file_exists", folder, path="done/plan.txt", gone=["plan.txt"]) == 0.0
    say(guest, "typeline mkdir -p work/done; cd work; echo 'blue hen' > plan.txt; cp plan.txt done")
    guest.observe()
    assert part("file_contains", note, text="blue hen", wait=True) == 1.0
    assert part("file_contains", note, text="red fox") == 0.2
    assert part("file_exists", folder, path="done/plan.txt", gone=["plan.txt"]) == 0.5
    say(guest, "typeline rm plan.txt; echo 'a red fox' > done/plan.txt")
    assert part("file_exists", folder, path="done/plan.txt", gone=["plan.txt"], wait=True) == 1.0
    assert part("file_contains", note, text="red fox", wait=False) == 0.5
    assert part("process_running", {"type": "guest_processes"}, names=["vi"], related=["top"]) == 0.0
    say(guest, "typeline vi")
    assert part("process_running", {"type": "guest_processes"}, names=["vi"], wait=True) == 1.0


def test_what_the_keyboard_lacks_is_refused_and_the_episode_goes_on(guest):
    with pytest.raises(EnvError, match="keyboard has no") as caught:
        guest.act(Action(kind="type", text="\u6f22"))
    assert caught.value.kind is ErrorKind.TASK
    assert guest.agent.execute(["true"]).returncode == 0


def test_the_password_is_nowhere_but_in_the_store(guest, place, password):
    """Not in any file of host, templates or desktops, and not on the screen; in memory images it must be."""
    guest.observe()
    screen = guest.agent.execute("cat /dev/vcs1", shell=True).output
    assert f"login: {keyboard_guest.USER}" in screen
    assert password not in screen
    spelled = re.compile(
        "[^a-z0-9]{1,40}".join(map(re.escape, "".join(re.findall("[a-f0-9]{12}", password))))
    )
    looked_at = 0
    for path in place.rglob("*"):
        # The snapshot of a logged-in machine holds what its memory holds; it is private (0400 in 0700).
        is_memory = path.name in ("ram", "state")
        if not path.is_file() or is_memory or path.parent.name == "secrets":
            continue
        data = path.read_bytes().decode("latin-1")
        assert password not in data, path
        assert len(data) > 1 << 20 or not spelled.search(data), path
        looked_at += 1
    assert looked_at > 5
    log = (place / "host" / "host.log").read_text()
    assert log
    assert SECRET not in log or password not in log
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path("/proc", pid, "cmdline").read_bytes() + Path("/proc", pid, "environ").read_bytes()
        except OSError:
            continue
        assert password.encode() not in line


def test_a_wrong_password_is_typed_once_and_the_error_names_its_secret_only(host, place, password):
    spec = SPEC.model_copy(update={"image": "locked-guest"})
    with pytest.raises(EnvError, match="is secret wrong-one right") as first:
        host.acquire("windows", spec, holder="tests", ttl_s=900)
    with pytest.raises(EnvError, match="It is not typed again") as second:
        host.acquire("windows", spec, holder="tests", ttl_s=900)
    assert first.value.permanent
    assert second.value.permanent
    assert password not in f"{first.value} {second.value}"
    (place / "secrets" / "wrong-one").unlink()
    with pytest.raises(EnvError, match="secret wrong-one is missing"):
        host.acquire("windows", spec, holder="tests", ttl_s=900)


def test_the_variable_of_the_environment_is_the_other_store():
    assert variable_of(SECRET) == "DESKHAND_SECRET_KEYBOARD_GUEST"
