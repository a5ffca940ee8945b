"""Where OSWorld's own Python environment is."""

from pathlib import Path

from workers.desktops.contract import EnvError, ErrorKind
from workers.environments.osworld.child_process import REPOSITORY

FOLDER = REPOSITORY / ".venv-osworld"


def find_python(configured: str = "") -> Path:
    """The interpreter to start children with. Raises EnvError that says how to install it."""
    python = Path(configured).expanduser() if configured else FOLDER / "bin" / "python"
    if python.is_file():
        return python
    message = f"OSWorld's environment is not there ({python}); install it by `make osworld-env`"
    raise EnvError(message, kind=ErrorKind.TASK, permanent=True)
