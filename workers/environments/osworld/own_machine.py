"""Tree and terminal of a machine of OSWorld's own providers, as DesktopEnv's controller reads them."""

from dataclasses import dataclass
from typing import Literal

from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.osworld.child_messages import Read, Text
from workers.environments.osworld.child_process import OsworldProcess

OWN_READ_LIMIT_S = 30.0
"""Of a tree or terminal of OSWorld's own machines: the library asks three times."""


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """What DesktopEnv's own controller reads of its machine."""

    child: OsworldProcess

    def accessibility(self) -> str:
        return self._read("accessibility")

    def terminal(self) -> str:
        return self._read("terminal")

    def _read(self, what: Literal["accessibility", "terminal"]) -> str:
        found = self.child.call("read", Read(what=what), Text, OWN_READ_LIMIT_S)
        if found.text is None:
            raise EnvError(f"OSWorld's machine gave no {what}", kind=ErrorKind.GUEST)
        return found.text
