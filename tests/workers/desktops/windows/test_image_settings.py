"""Registering a Windows disk: what is copied, what is refused, and that no password is ever written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from training.contracts.types import Action
from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import EnvError
from workers.desktops.qemu.base_images import ImageError, ImageStore
from workers.desktops.qemu.machine_identity import UEFI_VARIABLES
from workers.desktops.windows.image_settings import WindowsSettings, register, settings_of
from workers.desktops.windows.login_keys import Login, secret_typist, type_login

MACHINE = {"memory_mb": 4096, "vcpus": 2}
LOGIN = Login(secret="windows-admin")


def qcow2(path: Path, *options: str) -> Path:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *options, str(path), "4M"], check=True)
    return path


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return qcow2(tmp_path / "disk.qcow2")


def test_a_registered_disk_is_an_image_like_any_other(tmp_path, disk):
    settings = WindowsSettings(login=LOGIN)
    folder = register(tmp_path / "images", "windows-2022", disk, settings, machine=MACHINE)
    image = ImageStore(tmp_path / "images").load("windows-2022")
    assert folder == tmp_path / "images" / "windows-2022"
    assert (image.manifest.os, image.manifest.agent, image.kernel) == ("windows", None, None)
    assert image.manifest.machine.memory_mb == 4096
    assert settings_of(image) == settings
    assert disk.exists()
    assert not list((tmp_path / "images").glob(".draft*"))


def test_an_uefi_image_brings_its_variables(tmp_path, disk):
    variables = tmp_path / "vars"
    variables.write_bytes(b"v" * 100)
    settings = WindowsSettings(firmware="uefi")
    register(tmp_path / "images", "win11", disk, settings, machine=MACHINE, variables=variables)
    image = ImageStore(tmp_path / "images").load("win11")
    assert (image.folder / UEFI_VARIABLES).read_bytes() == b"v" * 100
    (image.folder / UEFI_VARIABLES).unlink()
    with pytest.raises(ImageError, match="needs its variables"):
        settings_of(image)


def test_what_is_no_whole_qcow2_disk_is_refused_by_name(tmp_path, disk):
    images = tmp_path / "images"
    raw = tmp_path / "raw.img"
    raw.write_bytes(b"\0" * 4096)
    layer = qcow2(tmp_path / "layer.qcow2", "-b", str(disk), "-F", "qcow2")
    for path, part in ((raw, "is raw, not qcow2"), (layer, "needs"), (tmp_path / "none", "No such file")):
        with pytest.raises(ImageError, match=part):
            register(images, "x", path, WindowsSettings(), machine=MACHINE)
    with pytest.raises(ImageError, match="uefi needs the variables"):
        register(images, "x", disk, WindowsSettings(firmware="uefi"), machine=MACHINE)
    with pytest.raises(ImageError, match=r"name '\.\./x'"):
        register(images, "../x", disk, WindowsSettings(), machine=MACHINE)
    assert not images.exists() or not list(images.iterdir())


def test_a_registered_image_is_not_replaced_by_accident(tmp_path, disk):
    register(tmp_path / "images", "x", disk, WindowsSettings(), machine=MACHINE)
    with pytest.raises(ImageError, match="exists; remove it first"):
        register(tmp_path / "images", "x", disk, WindowsSettings(), machine=MACHINE)


def test_a_wrong_image_file_names_its_field(tmp_path, disk):
    folder = register(tmp_path / "images", "x", disk, WindowsSettings(), machine=MACHINE)
    image = ImageStore(tmp_path / "images").load("x")
    path = folder / "image.json"
    values = json.loads(path.read_text())
    for windows, part in (
        ({"firmware": "coreboot"}, "windows.firmware"),
        ({"login": {"secret": "a", "password": "hunter2"}}, "windows.login.password"),
        ({"login": {"secret": "a", "steps": ["format c:", "password"]}}, "windows.login.steps"),
        (None, "windows is missing"),
    ):
        path.write_text(json.dumps(values | {"windows": windows}))
        with pytest.raises(ImageError, match=part) as caught:
            settings_of(image)
        assert "hunter2" not in str(caught.value)


def test_the_command_registers_and_says_what_to_do_next(tmp_path, disk):
    command = [sys.executable, "-m", "workers.desktops.windows", "register", "win", str(disk)]
    options = ["--images", str(tmp_path / "images"), "--secret", "windows-admin", "--step", "sendkey esc"]
    steps = ["--step", "password", "--step", "sendkey ret"]
    done = subprocess.run([*command, *options, *steps], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "desktops.windows.image" in done.stdout
    image = ImageStore(tmp_path / "images").load("win")
    login = settings_of(image).login
    assert login is not None
    assert login.steps == ("sendkey esc", "password", "sendkey ret")
    again = subprocess.run([*command, *options[:2]], capture_output=True, text=True, check=False)
    assert (again.returncode, "exists" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("steps", "part"),
    [
        (("sendkey ret",), "exactly one step"),
        (("password", "password"), "exactly one step"),
        (("password", "run calc"), "unknown verb 'run'"),
        (("password", "sendkey hyper"), "unknown key"),
    ],
)
def test_login_steps_are_keyboard_verbs_with_one_password(steps, part):
    with pytest.raises(ValidationError, match=part):
        Login(secret="x", steps=steps)


def test_a_secrets_name_is_not_a_password():
    with pytest.raises(ValidationError, match="secret"):
        Login(secret="P@ssw0rd!")


def test_logging_in_types_the_password_where_its_step_is():
    done: list[object] = []
    login = Login(secret="x", steps=("typeline agent", "password", "sendkey ret"))
    type_login(login, done.append, lambda: done.append("(the password)"))
    assert done == [
        Action(kind="type", text="agent\n"),
        "(the password)",
        Action(kind="key", keys=("Return",)),
    ]


def test_a_password_that_cannot_be_typed_is_named_by_its_secret_alone():
    def send(char: str) -> None:
        if char == "\u00fc":
            raise ActionRefused(f"this desktop's keyboard has no {char!r}")

    with pytest.raises(EnvError, match="secret windows-admin") as caught:
        secret_typist("gr\u00fcn", send, "windows-admin")()
    assert caught.value.permanent
    shown = f"{caught.value!r} {caught.value.__cause__!r}"
    assert "\u00fc" not in shown
    assert caught.value.__suppress_context__
