"""Word from the channel layer that something about a trajectory's screen changed."""

import asyncio
from contextlib import suppress

from channels.layers import get_channel_layer

from webapp.live.broadcast import group_name
from webapp.trajectories.services.announcements import stream_of

ABOUT_SCREENS = ("control.", "screen.", "trajectory.")


class ScreenChanges:
    """Wakes what waits for a change; what has changed is to be read from the database."""

    def __init__(self, trajectory_id: int) -> None:
        self._group = group_name(stream_of(trajectory_id))
        self._layer = get_channel_layer()
        self._has_come = asyncio.Event()
        self._channel = ""
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """From now on nothing is missed, but for what the layer itself loses."""
        self._channel = await self._layer.new_channel()
        await self._layer.group_add(self._group, self._channel)
        self._listening = asyncio.create_task(self._listen())

    async def wait(self, limit_s: float) -> None:
        """Until something changed, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._has_come.wait()
        self._has_come.clear()

    async def close(self) -> None:
        """Idempotent. The layer forgets the channel when its reader is cancelled."""
        if self._listening is None:
            return
        listening, self._listening = self._listening, None
        await self._layer.group_discard(self._group, self._channel)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            message = await self._layer.receive(self._channel)
            if message["event_type"].startswith(ABOUT_SCREENS):
                self._has_come.set()
