"""The names of the parameters that an SGLang server has, written by its own process when it makes the model.

    folder/parameters.json     in the spool's folder; all servers of a policy server run the same model

SGLang 0.5.16 tells names only together with checksums of all tensors (`/weights_checker`), which took nine
seconds at the first call on a new server.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

NAMES = "parameters.json"


def write_names(folder: Path, names: Iterable[str]) -> None:
    """Called by every rank of every server; the file is whole at any time."""
    temporary = folder / f"{NAMES}.{os.getpid()}"
    temporary.write_text(json.dumps(sorted(names)))
    temporary.replace(folder / NAMES)


def read_names(folder: Path) -> list[str]:
    """Raises OSError when no server has written it."""
    return list(json.loads((folder / NAMES).read_text()))
