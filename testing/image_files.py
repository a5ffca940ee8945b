"""The files of a container image as a folder: what the COPY lines of its stage take from the tree."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from testing.paths import REPOSITORY


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a Dockerfile, with what it has of the stages that it is built from."""

    copies: tuple[tuple[str, str], ...]
    """(path of the repository, path below /app) of each source of a COPY line."""
    command: tuple[str, ...]
    """Its CMD."""
    requirements: tuple[str, ...] = ()
    """Files of the repository that its pip lines read."""


def stages(dockerfile: Path) -> dict[str, Stage]:
    """By name; each goes on from the one that its FROM names."""
    found: dict[str, Stage] = {}
    name, stage = "", Stage((), ())
    for line in dockerfile.read_text().replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stage = found.get(base, Stage((), ()))
        elif word == "COPY":
            whole = re.fullmatch(r"--from=(\w+) /app /app", rest)
            copied = found[whole[1]].copies if whole else _copies(rest)
            stage = replace(stage, copies=tuple(dict.fromkeys((*stage.copies, *copied))))
        elif word == "CMD":
            stage = replace(stage, command=tuple(json.loads(rest)))
        elif word == "RUN":
            stage = replace(stage, requirements=(*stage.requirements, *_requirements(rest, stage)))
        found[name] = stage
    return found


def _copies(arguments: str) -> list[tuple[str, str]]:
    words = shlex.split(arguments)
    if words[0].startswith("--from="):  # made by another stage out of what lies here under the same name
        source, target = words[1:]
        if target.startswith("/"):
            return []  # programs of another image
        return [(source.removeprefix("/app/"), target)]
    *sources, target = words
    is_folder = target.endswith("/")
    return [(source, target + Path(source).name if is_folder else target) for source in sources]


def _requirements(command: str, stage: Stage) -> list[str]:
    """Files that a RUN line hands to pip. Raises KeyError where no COPY line gives one to the image."""
    given = {target: source for source, target in stage.copies}
    return [given[name] for name in re.findall(r"-r (requirements/[\w/-]+\.txt)", command)]


def lay_out(stage: Stage, folder: Path, *, without: frozenset[str] = frozenset()) -> None:
    """Make `folder` what /app of the image is, but for the COPY lines whose target is in `without`."""
    for source, target in stage.copies:
        if target in without:
            continue
        place = folder / target
        if source == "node_modules":  # large, and reached by a setting
            place.symlink_to((REPOSITORY / source).resolve())
            continue
        assert not _is_ignored(source), f".dockerignore leaves out {source}, which a COPY line takes"
        place.parent.mkdir(parents=True, exist_ok=True)
        if (REPOSITORY / source).is_dir():
            shutil.copytree(REPOSITORY / source, place, copy_function=_linked, dirs_exist_ok=True)
        else:
            _linked(str(REPOSITORY / source), str(place))


def _linked(source: str, target: str) -> None:
    """The same file where the file system can; its times stay, and so does its bytecode beside it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _is_ignored(source: str) -> bool:
    patterns = (REPOSITORY / ".dockerignore").read_text().split()
    return any(fnmatch(source.rstrip("/"), pattern) for pattern in patterns)
