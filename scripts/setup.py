"""Install what Deskhand needs: system packages, the Python environment in .venv, front-end files, help,
the Python client.

Every step first looks whether there is anything to do, so a second run takes well under a second.
Uses the standard library only: it runs before anything is installed.
"""

import argparse
import sys
import time

from setup_assets import install_assets, install_test_runner
from setup_client import install_client
from setup_common import SetupError
from setup_help import install_help
from setup_osworld import install_osworld
from setup_python import install_python
from setup_system import install_system


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/setup", description=__doc__)
    parser.add_argument("--test", action="store_true", help="also what tests and checks need")
    parser.add_argument("--vm", action="store_true", help="also what virtual machines and their image need")
    parser.add_argument(
        "--office", action="store_true", help="also the programs of desk-office for x11 desktops"
    )
    parser.add_argument("--no-system", action="store_true", help="leave system packages alone")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        changed = [
            not options.no_system
            and install_system(with_tests=options.test, with_vm=options.vm, with_office=options.office),
            install_python(with_tests=options.test),
            install_assets(),
            options.test and install_test_runner(),
            install_help(),
            install_client(),
            options.test and install_osworld("lite"),
        ]
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    if any(changed):
        print(f"setup: done in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
