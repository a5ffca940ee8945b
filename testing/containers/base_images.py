"""The base images that the Dockerfiles name: from the hub, or stand-ins of Debian's packages."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from testing.containers.engine import NoEngine, docker

STAND_INS = Path(__file__).with_name("stand_ins")
DEBIAN = "deskhand-test/debian"
MIRROR = "http://deb.debian.org/debian"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
NAMES = {
    "python": "python:3.11-slim-bookworm",
    "node": "node:22-bookworm-slim",
    "postgres": "postgres:16-bookworm",
    "redis": "redis:7-bookworm",
}
"""Stage of the stand-in -> what deploy/example.env names."""


def provide() -> dict[str, str]:
    """Image -> "the hub's" or "a stand-in", once each is there. Raises NoEngine where neither works."""
    return {image: _provide(stage, image) for stage, image in NAMES.items()}


def _provide(stage: str, image: str) -> str:
    if not _has(image) and not _works("pull", "--quiet", image):
        _stand_in(stage, image)
    pulled = docker("image", "inspect", "--format={{len .RepoDigests}}", image).strip() != "0"
    return "the hub's" if pulled else "a stand-in"


def _has(image: str) -> bool:
    return _works("image", "inspect", image)


def _works(*words: str) -> bool:
    return subprocess.run(["docker", *words], capture_output=True, check=False).returncode == 0


def _stand_in(stage: str, image: str) -> None:
    with tempfile.TemporaryDirectory(prefix="stand-ins-") as folder:
        context = Path(folder)
        if not _has(DEBIAN):
            _import_debian(context / "debian.tar")
        for file in STAND_INS.iterdir():
            shutil.copy(file, context)
        shutil.copy(AUTHORITIES, context / "authorities.crt")
        docker("build", "--network=host", f"--target={stage}", f"--tag={image}", folder, limit_s=1200)


def _import_debian(archive: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise NoEngine("no image hub answers, and there is no mmdebstrap for stand-ins")
    words = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", archive, MIRROR]
    subprocess.run(words, capture_output=True, check=True)
    docker("import", str(archive), DEBIAN)
    archive.unlink()
