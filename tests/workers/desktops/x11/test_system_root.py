"""Desktops whose programs come from a folder with another system than this machine's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.x11.provider import X11Provider
from workers.desktops.x11.sandbox import ETC
from workers.desktops.x11.system_root import VARIABLE

pytestmark = pytest.mark.desktop
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@pytest.fixture
def other_root(tmp_path: Path, monkeypatch) -> Path:
    """This machine's programs with another /etc/mailcap."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "usr").symlink_to("/usr")
    for name in LINKS:
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for name in ETC:
        (root / "etc" / name).symlink_to(f"/etc/{name}")
    (root / "etc" / "mailcap").unlink()
    (root / "etc" / "mailcap").write_text("# of the other system\n")
    monkeypatch.setenv(VARIABLE, str(root))
    return root


async def test_a_desktop_sees_the_system_of_the_named_folder(other_root, short_dir):
    provider = X11Provider()
    if not provider.is_sandboxed:
        pytest.skip("needs bubblewrap")
    assert provider.probe().usable
    desktop = await provider.create("other", DesktopSpec(), short_dir / "d")
    try:
        with AgentClient(desktop.endpoints.agent) as agent:
            assert agent.execute(["cat", "/etc/mailcap"]).output == "# of the other system\n"
    finally:
        await desktop.destroy()


def test_health_names_what_the_folder_lacks(other_root, tmp_path, monkeypatch):
    (other_root / "usr").unlink()
    (other_root / "usr" / "bin").mkdir(parents=True)
    for name in ("dbus-daemon", "python3", "xkbcomp", "Xvnc"):
        # As Debian's alternatives: an absolute link that leads nowhere outside of that system.
        (other_root / "usr" / "bin" / name).symlink_to(f"/etc/alternatives/{name}-of-another-system")
    health = X11Provider().probe()
    assert not health.usable
    assert health.reasons[0] == "openbox is not installed"
    assert "dbus-daemon is not installed" not in health.reasons


async def test_a_folder_without_a_system_is_refused_by_name(tmp_path, short_dir, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    health = X11Provider().probe()
    assert not health.usable
    assert health.reasons == [f"{VARIABLE}={tmp_path}: no system there (usr/bin is missing)"]
    with pytest.raises(EnvError, match=VARIABLE):
        await X11Provider().create("none", DesktopSpec(), short_dir / "d")


async def test_without_a_sandbox_another_system_cannot_be_used(other_root, short_dir):
    provider = X11Provider(force_plain=True)
    assert f"{VARIABLE} needs the sandbox" in provider.probe().reasons
    with pytest.raises(EnvError, match=f"{VARIABLE} needs the sandbox"):
        await provider.create("plain", DesktopSpec(), short_dir / "d")
    assert shutil.which("Xvnc") is None or not (short_dir / "d").exists()
