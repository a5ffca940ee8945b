"""A fault of SGLang 0.5.16 mended: requests that are aborted while they wait keep their adapter in use.

SGLang counts the requests of each adapter, and unloading one waits until none is left. Of a request that it
aborts in its queue it forgets the state but not the count (sgl-project/sglang issue 34205), so that the next
unloading never ends; every weight sync of adapters aborts what waits. Runs inside SGLang's process
(`training.sampler.sglang.processors.patch_adapter_release`).
"""

import asyncio
from typing import Any

RELEASED_BY_SGLANG = (500, 503)
"""Status codes of aborts whose answer releases the adapter itself."""

_releases: set[asyncio.Task[None]] = set()
"""The event loop holds tasks weakly."""


def release_on_abort(manager: Any) -> None:
    """Let SGLang's class of tokenizer managers count an aborted request out."""
    usual = manager._handle_abort_req

    def handle(self: Any, aborted: Any) -> None:
        state = self.rid_to_state.get(aborted.rid)
        usual(self, aborted)
        is_over = state is not None and aborted.rid not in self.rid_to_state
        if not is_over or not self.enable_lora or not state.obj.lora_path:
            return
        if (aborted.finished_reason or {}).get("status_code") not in RELEASED_BY_SGLANG:
            task = asyncio.ensure_future(self.lora_registry.release(state.obj.lora_id))
            _releases.add(task)
            task.add_done_callback(_releases.discard)

    manager._handle_abort_req = handle
