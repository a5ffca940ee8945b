"""Aborted requests no longer hold SGLang's adapters; its own code as it is written in version 0.5.16."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from training.sampler.sglang.adapter_release_patch import release_on_abort


class Registry:
    """Counts the requests of adapters, as SGLang's LoRARegistry does."""

    def __init__(self) -> None:
        self.in_use = {"adapter-1": 1}

    async def release(self, lora_id: str) -> None:
        self.in_use[lora_id] -= 1


def aborted_once(lora_path: str, finished_reason: dict[str, int] | None) -> tuple[int, list[str]]:
    """(requests that still count, what SGLang's own code did) after a request was aborted twice."""
    did: list[str] = []

    class Manager:
        """As SGLang's: it forgets the request, not that the request had the adapter."""

        enable_lora = True

        def __init__(self) -> None:
            request = SimpleNamespace(obj=SimpleNamespace(lora_path=lora_path, lora_id="adapter-1"))
            self.rid_to_state = {"request": request}
            self.lora_registry = Registry()

        def _handle_abort_req(self, aborted: SimpleNamespace) -> None:
            if self.rid_to_state.pop(aborted.rid, None):
                did.append(aborted.rid)

    release_on_abort(Manager)
    manager = Manager()

    async def abort() -> None:
        for _ in range(2):  # SGLang sends the abort to every server and may hear of it again
            manager._handle_abort_req(SimpleNamespace(rid="request", finished_reason=finished_reason))
        await asyncio.sleep(0.01)

    asyncio.run(abort())
    return manager.lora_registry.in_use["adapter-1"], did


@pytest.mark.parametrize(
    ("lora_path", "finished_reason", "left"),
    [
        ("deskhand-1", None, 0),
        ("deskhand-1", {"status_code": 400}, 0),
        ("deskhand-1", {"status_code": 503}, 1),  # its answer releases it
        ("", None, 1),  # it never had an adapter: another request's count stays
    ],
)
def test_an_aborted_request_releases_its_adapter_once(
    lora_path: str, finished_reason: dict[str, int] | None, left: int
) -> None:
    assert aborted_once(lora_path, finished_reason) == (left, ["request"])
