"""What set-up writes from this tree, for tests that need it: git ignores it, so a new checkout has none."""

import subprocess
import sys

from testing.paths import REPOSITORY


def set_up(step: str) -> None:
    """Let `scripts/setup_STEP.py` do what is left to do, without its output."""
    program = f"import setup_{step}; setup_{step}.install_{step}()"
    folder = REPOSITORY / "scripts"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, stdout=subprocess.DEVNULL)
