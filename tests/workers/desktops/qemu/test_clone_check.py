"""A clone is taken only when it wakes up as its template was saved; else the host rebuilds and says so."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from testing.servers.answering import Answer, Request, answering
from training.contracts.config import ProviderInfo
from workers.desktops.contract import DesktopSpec, Endpoints, EnvError, NotClean
from workers.desktops.host.host import DeskHost
from workers.desktops.host.leases import Leases
from workers.desktops.host.resets import Resets
from workers.desktops.qemu.clone_check import (
    WrongPicture,
    require_fresh_agent,
    require_same_picture,
    running_programs,
)
from workers.desktops.qemu.template_store import Template

SPEC = DesktopSpec()
PICTURE = b"P6 1 1 255 abc"


@contextmanager
def agent(status: int = 200, **said: Any) -> Iterator[str]:
    """HOST:PORT of an agent that answers so; it repeats the nonce unless it says another."""

    def answer(request: Request) -> Answer:
        asked = parse_qs(urlsplit(request.path).query)
        body = json.dumps({"nonce": asked.get("nonce", [""])[0], **said}).encode()
        return Answer(b'{"programs": {}}' if said.get("is_old") else body, status)

    with answering(answer) as url:
        yield url.removeprefix("http://")


def template(programs: list[str], *, parent: str = "", snapshot: str = "") -> Template:
    digest = hashlib.sha1(PICTURE, usedforsecurity=False).hexdigest()
    meta = SimpleNamespace(key="k", programs=programs, parent=parent, snapshot=snapshot, screen_digest=digest)
    return Template(Path("/nowhere"), meta)  # type: ignore[arg-type]


def test_a_clone_with_its_templates_programs_is_taken():
    with agent(programs={"7": "xterm", "8": "sh"}) as address:
        assert running_programs(address) == ["sh", "xterm"]
        require_fresh_agent(address, template(["sh", "sh", "xterm"]))


def test_a_program_more_than_in_the_template_is_named():
    with agent(programs={"7": "xterm", "8": "xterm"}) as address:
        with pytest.raises(NotClean, match="not in its template: xterm"):
            require_fresh_agent(address, template(["xterm"]))
        require_fresh_agent(address, template(["xterm"], parent="p"))  # a task's programs come and go
        require_fresh_agent(address, template([], snapshot="s"))


def test_an_answer_to_another_question_is_none():
    with agent(programs={}, nonce="old") as address, pytest.raises(NotClean, match="question"):
        require_fresh_agent(address, template([]))


def test_an_agent_that_has_no_such_page_is_believed_and_one_that_fails_is_not():
    with agent(404) as address:
        require_fresh_agent(address, template([]))
    with agent(500, message="no") as address, pytest.raises(EnvError, match="health is 500"):
        require_fresh_agent(address, template([]))


def test_an_image_from_before_the_check_is_refused_with_the_remedy():
    with agent(is_old=True) as address, pytest.raises(EnvError, match="run `make guest-image`") as caught:
        require_fresh_agent(address, template([]))
    assert caught.value.permanent


async def test_another_picture_than_the_templates_is_refused(tmp_path: Path):
    shown = PICTURE

    async def screenshot(path: Path) -> None:
        path.write_bytes(shown)

    machine: Any = SimpleNamespace(folder=tmp_path, screenshot=screenshot)
    await require_same_picture(machine, template([]))
    shown = PICTURE + b"!"
    with pytest.raises(WrongPicture, match="template k does not show"):
        await require_same_picture(machine, template([]))


class Machines:
    """Makes machines that are reset by a new one; some do not wake up as their template."""

    info = ProviderInfo(name="machines", title="Machines", capabilities=frozenset())

    def __init__(self, *are_clean: bool) -> None:
        self.are_clean = list(are_clean)

    def boot_phase(self, _desktop_id: str) -> str:
        return ""

    async def create(self, *_: object) -> Any:
        if not self.are_clean.pop(0):
            raise NotClean("programs run in a clone that are not in its template: nc")
        return Machine()


class Machine:
    pid = 0
    cgroups: list[str] = []
    endpoints = Endpoints()

    async def wait_dead(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def destroy(self) -> None: ...


async def test_the_next_lease_gets_a_rebuilt_machine_and_people_see_why(tmp_path: Path):
    host = DeskHost(tmp_path)
    host.providers = {"machines": Machines(True, False, True)}  # type: ignore[dict-item]
    resets = Resets(host)
    record = host.desktops[(await host.create("machines", SPEC)).desktop_id]
    lease = await Leases(host, resets).acquire("machines", SPEC, "a test", 60)
    found = await resets.reset(record.desktop_id, lease.lease_id)
    assert found.report.rebuilt
    assert found.report.reason == "not clean: programs run in a clone that are not in its template: nc"
    assert [failure.reason for failure in host.boot_failures.kept] == [
        "programs run in a clone that are not in its template: nc"
    ]
    assert record.generation == 3
    await host.close()
