"""Write requirements/hashed/ anew: the pins, each with the hashes of all files that its registry has of it.

    .venv/bin/python scripts/hash_requirements.py        after a change of requirements/*.txt

uv asks the registry for hashes alone (no file is downloaded); what a pin brings along is pinned by hand
already, so nothing is resolved. UV_INDEX_URL names another registry than PyPI.
"""

import subprocess
import sys

from requirement_files import HASHED, HASHED_NAMES, UNHASHED, pins_of

HEAD = "# Written by scripts/hash_requirements.py; change requirements/{name}.txt instead.\n"


def main() -> int:
    HASHED.mkdir(exist_ok=True)
    for name in HASHED_NAMES:
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-deps", "--generate-hashes"),
            *("--no-annotate", "--no-header", "--universal", "--python-version", "3.12", "-"),
        ]
        pins = [f"{pin}=={version}" for pin, version in pins_of(name).items() if pin not in UNHASHED]
        compiled = subprocess.run(
            command, input="\n".join(pins), stdout=subprocess.PIPE, text=True, check=False
        )
        if compiled.returncode:
            return compiled.returncode
        (HASHED / f"{name}.txt").write_text(HEAD.format(name=name) + compiled.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
