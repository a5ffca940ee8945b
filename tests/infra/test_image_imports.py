"""All that a service may import, also later, is in its image: by a COPY line, or as a pinned package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testing.image_environment import make_environment, missing_imports, requirements_of
from testing.image_files import lay_out
from testing.image_services import OF_PAGES, services

SERVICES = services()
IMPORTED = {
    "web": (("webapp",), ("workers.gpu",)),
    "env-worker": (("workers",), ("workers.gpu", "workers.guest", "workers.guest_image")),
    "gpu-worker": (("workers/gpu", "training"), ()),
}
"""Service -> folders whose modules may run in it, and rooms below them that run elsewhere."""
OF_OTHER_PYTHONS = r"(sglang|desktop_env)\b"
"""Programs that have an environment of their own beside ours."""
BY_HAND = r"(wandb|mlflow|google\.protobuf|gguf|fla)\b"
"""Of commands whose page says what to install first."""


@pytest.mark.parametrize("name", IMPORTED)
def test_nothing_that_a_service_may_import_is_missing(name: str, tmp_path: Path):
    assert missing(name, tmp_path) == set()


def missing(name: str, folder: Path, without: frozenset[str] = frozenset()) -> set[str]:
    """`NAME, imported by MODULE` of the image of a service, without these COPY lines and packages."""
    stage = SERVICES[name].stage
    rooms, apart = IMPORTED[name]
    app = folder / "app"
    app.mkdir()
    lay_out(stage, app, without=OF_PAGES | without)
    files = [file for room in rooms for file in (app / room).rglob("*.py")]
    modules = [".".join(file.relative_to(app).with_suffix("").parts) for file in files]
    begin = [one for one in modules if not f"{one}.".startswith(tuple(f"{room}." for room in apart))]
    python = make_environment(requirements_of(stage) - without, folder / "venv")
    found = missing_imports(app, python, begin, apart)
    return {one for one in found if not re.match(f"{OF_OTHER_PYTHONS}|{BY_HAND}", one)}


PLANTED = [
    ("web", "boto3", "boto3, imported by webapp.lib.media.bucket_storage"),
    ("web", "training", "training.contracts.config, imported by"),
    ("env-worker", "python-xlib", "Xlib"),
    ("gpu-worker", "webapp", "webapp.worker_door.attempts, imported by workers.gpu"),
    ("gpu-worker", "safetensors", "safetensors.torch, imported by"),
    ("gpu-worker", "nvidia-ml-py", "pynvml, imported by workers.gpu"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "without", "said"), PLANTED)
def test_what_an_image_lacks_is_named(name: str, without: str, said: str, tmp_path: Path):
    assert any(said in one for one in missing(name, tmp_path, frozenset({without})))
