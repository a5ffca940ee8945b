"""Discs hold what was put on them under names that both systems read; shipped files hold no secret."""

import io
import re
import xml.etree.ElementTree as ElementTree

import pycdlib
import pytest

from training.contracts.types import Task
from training.tasks.supported_by import deskhand
from workers.desktops.windows.iso_disc import MEDIA, DiscError, guest_files, make_disc
from workers.tasks.errors import SetupError
from workers.tasks.setup_verbs import run_steps

FILES = {
    "Read me.txt": b"hello",
    "Folder One/deep/\u00e9t\u00e9.bin": bytes(range(256)) * 300,
    "Folder One/empty": b"",
}


def read_disc(data: bytes, names: str) -> dict[str, bytes]:
    """Every file of a disc by one of its trees: joliet_path or rr_path."""
    disc = pycdlib.PyCdlib()
    disc.open_fp(io.BytesIO(data))
    found = {}
    for folder, _, files in disc.walk(**{names: "/"}):
        for name in files:
            path = f"{folder.rstrip('/')}/{name}"
            content = io.BytesIO()
            disc.get_file_from_iso_fp(content, **{names: path})
            found[path[1:]] = content.getvalue()
    disc.close()
    return found


@pytest.mark.parametrize("names", ["joliet_path", "rr_path"])
def test_both_trees_of_a_disc_hold_every_file(names):
    assert read_disc(make_disc(FILES), names) == FILES


def test_the_label_is_the_discs_name():
    disc = pycdlib.PyCdlib()
    disc.open_fp(io.BytesIO(make_disc(FILES, label="TASK_7")))
    assert disc.pvd.volume_identifier.decode().strip() == "TASK_7"
    with pytest.raises(DiscError, match="label"):
        make_disc({}, label="not allowed")


@pytest.mark.parametrize("path", ["../up", "a//b", "a\\b", "/root", "x" * 65, "nul\x00", "C:/x", ""])
def test_a_path_that_a_guest_cannot_read_is_refused_by_name(path):
    with pytest.raises(DiscError, match=re.escape(repr(path))):
        make_disc({path: b""})


def test_the_preparation_disc_holds_the_scripts_and_the_users_own_agent(tmp_path):
    installer = tmp_path / "agent.msi"
    installer.write_bytes(b"msi")
    files = guest_files(installer)
    assert set(files) == {"install.ps1", "session.ps1", "autounattend.xml", "qemu-ga-x86_64.msi"}
    assert files["qemu-ga-x86_64.msi"] == b"msi"
    assert "qemu-ga-x86_64.msi" not in guest_files()


def test_the_answer_file_is_xml_without_account_password_key_or_clock():
    text = (MEDIA / "autounattend.xml").read_text(encoding="utf-8")
    names = {element.tag.rsplit("}", 1)[-1] for element in ElementTree.fromstring(text).iter()}
    assert "FirstLogonCommands" in names
    assert not names & {"Password", "ProductKey", "UserAccounts", "AutoLogon", "TimeZone", "SkipRearm"}
    for path in MEDIA.glob("*.ps1"):
        assert not re.search(r"password|slmgr|Set-Date|w32tm", path.read_text(), re.IGNORECASE)


def disc_step(**parameters) -> list[dict]:
    return [{"type": "insert_disc", "parameters": parameters}]


def test_a_task_can_put_files_on_a_disc():
    inserted: list[bytes] = []

    class Console:
        def insert_disc(self, disc: bytes) -> None:
            inserted.append(disc)

    class Desktop:
        console = Console()

    files = [{"path": "Data/plan.txt", "content": "red fox"}, {"path": "b", "content_base64": "AAE="}]
    run_steps(disc_step(files=files), Desktop())
    assert read_disc(inserted[0], "joliet_path") == {"Data/plan.txt": b"red fox", "b": b"\0\1"}
    with pytest.raises(SetupError, match="is no file name"):
        run_steps(disc_step(files=[{"path": "../x", "content": ""}]), Desktop())


def test_a_desktop_without_a_drive_says_so():
    class Desktop:
        console = object()

    with pytest.raises(SetupError, match="no disc drive"):
        run_steps(disc_step(files=[]), Desktop())
    reason = deskhand.unsupported_reason(
        Task(task_id="t", instruction="", config=disc_step(files=[{"path": "x"}]))
    )
    assert "needs inline content" in reason
