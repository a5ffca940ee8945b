"""Setup verb insert_disc: files for the task on a disc in the machine's drive, for guests without drivers."""

import base64
from typing import Any, Protocol, runtime_checkable

from workers.desktops.windows.iso_disc import make_disc
from workers.tasks.errors import SetupError, TaskErrorKind
from workers.tasks.task_desktop_contract import TaskDesktop


@runtime_checkable
class DiscDrive(Protocol):
    """A console whose machine has a disc drive."""

    def insert_disc(self, disc: bytes) -> None:
        """Put an ISO image into the drive."""


def insert_disc(parameters: dict[str, Any], desktop: TaskDesktop) -> None:
    """`files` as for upload_file, their paths relative to the disc; `label` names it."""
    console = desktop.console
    if not isinstance(console, DiscDrive):
        raise SetupError(
            TaskErrorKind.UNSUPPORTED, "insert_disc: this provider's desktops have no disc drive"
        )
    files = {str(item["path"]): content_of(item) for item in parameters["files"]}
    console.insert_disc(make_disc(files, label=str(parameters.get("label", "TASK"))))


def content_of(item: dict[str, Any]) -> bytes:
    """A file's inline content: text, or base64. Raises KeyError, ValueError."""
    if "content_base64" in item:
        return base64.b64decode(item["content_base64"], validate=True)
    return str(item["content"]).encode()
