"""Which programs of OSWorld's image our desktops lack, by the image they are made from."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

BROWSERS = ("google-chrome", "chrome", "firefox", "thunderbird")
OFFICE = ("libreoffice", "soffice", "localc", "lowriter", "limpress", "chromium")
"""Programs of `make setup-office` (requirements/system-office.txt)."""
OTHER = (
    "gimp", "vlc", "code", "nautilus", "gnome-terminal", "gnome-control-center", "socat", "sudo", "git", "jq",
    "gsettings", "gio", "pip", "conda", "xsel", "timedatectl", "pulseaudio", "pactl",
)  # fmt: skip
OFFICE_IMAGE = "debian-office"
"""The image of virtual machines with the applications of OSWorld's tasks that Debian has."""
OFFICE_COMMANDS = Path(__file__).with_name("debian_office_commands.json")
"""Every command of the built image; tests/workers/guest/test_office_machine.py writes it from image.json."""
WHY_NOT = {"sudo": "programs have no sudo in our desktops"}
OFFICE_ENDINGS = frozenset(
    (".doc", ".docx", ".odt", ".xls", ".xlsx", ".ods", ".ppt", ".pptx", ".odp", ".rtf")
)
"""Files that need LibreOffice; where it is missing, the text editor would show them as bytes."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What the desktops of one image lack."""

    missing: frozenset[str]
    """Programs of OSWorld's own image that are not there."""
    opens_office_files: bool
    commands: frozenset[str] = frozenset()
    """All that the built image has; where it is known, `missing` says nothing more."""

    def has(self, name: str) -> bool:
        return name in self.commands if self.commands else name not in self.missing

    def gap_of_command(self, program: str) -> str:
        """Why a command cannot be started, by its first word; "" when it can."""
        name = PurePosixPath(program).name
        return "" if self.has(name) else WHY_NOT.get(name, f"{name} is not installed in our desktops")

    def gap_of_file(self, path: str) -> str:
        """Why a file cannot be opened in a program made for it; "" when it can."""
        ending = PurePosixPath(path).suffix.lower()
        if self.opens_office_files or ending not in OFFICE_ENDINGS:
            return ""
        return f"LibreOffice, which opens {ending}, is not installed in our desktops"


DESK = Programs(frozenset((*BROWSERS, *OFFICE, *OTHER)), opens_office_files=False)
"""Sandboxes on x11 as `make up` sets them up, and the image debian-desk."""
WITH_OFFICE = Programs(frozenset((*BROWSERS, *OTHER)), opens_office_files=True)
"""Sandboxes on x11 after `make setup-office`; debian-office has that, too."""


@cache
def office_machine() -> Programs:
    """The image debian-office as it was built."""
    commands = frozenset(json.loads(OFFICE_COMMANDS.read_text()))
    return Programs(frozenset(), opens_office_files=True, commands=commands)
