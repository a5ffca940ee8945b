"""What provider `osworld` needs on the machines of the env workers."""

import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from training.contracts.config import OsworldConfig

INSTALL = "Install it there by `make osworld-env`"


def osworld_warnings(config: OsworldConfig) -> Iterator[tuple[str, str, str]]:
    """(title, detail, knob) of what is not to be seen on this machine; env workers may run elsewhere."""
    python = (
        Path(config.python).expanduser() if config.python else settings.BASE_DIR / ".venv-osworld/bin/python"
    )
    if not os.path.isfile(python):
        detail = f"{python} is not on this machine. {INSTALL} if env workers run here."
        yield "OSWorld's environment is not installed", detail, "desktops.osworld.python"
    if not config.machine_provider:
        detail = f"DesktopEnv starts {config.machines} machines: env workers need their engine or account."
        yield "Machines of OSWorld's own", detail, "desktops.osworld.machines"
    for knob in ("checkout", "downloads"):
        folder = getattr(config, knob)
        if folder and not os.path.isdir(Path(folder).expanduser()):
            yield f"No such folder: {folder}", "Env workers must see it.", f"desktops.osworld.{knob}"
