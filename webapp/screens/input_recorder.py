"""Writes down what a person does at a desktop, beside their input so that it is never delayed."""

import asyncio
import time

from webapp.live.consumers import in_database
from webapp.screens.rfb.gestures_to_actions import Gesture, GestureReader
from webapp.screens.rfb.protocol import InputEvent
from webapp.screens.services import controls

TICK_S = 0.2
MAX_UNWRITTEN = 2000
"""Gestures that wait for the database; no hand makes more."""


class InputRecorder:
    """Of one control, from its connection's first input to its last."""

    def __init__(self, control_id: int, num_written: int) -> None:
        self._control_id = control_id
        self._gestures = GestureReader(next_index=num_written)
        self._unwritten: asyncio.Queue[list[Gesture] | None] = asyncio.Queue()
        self.task = asyncio.create_task(self._write_all())
        """Ends before `finish` only when the database fails it."""

    def note(self, events: list[InputEvent]) -> bool:
        """Input that passed, in order; False when far more waits than a person can have done."""
        now = time.time()
        for event in events:
            self._put(self._gestures.read(event, now))
        return self._unwritten.qsize() <= MAX_UNWRITTEN

    async def finish(self) -> None:
        """After the last input: returns when everything is in the database."""
        self._put(self._gestures.finish(time.time()))
        self._unwritten.put_nowait(None)
        await self.task

    def _put(self, gestures: list[Gesture]) -> None:
        if gestures:
            self._unwritten.put_nowait(gestures)

    async def _write_all(self) -> None:
        """In order; ends at a None."""
        while True:
            self._put(self._gestures.tick(time.time()))
            try:
                async with asyncio.timeout(TICK_S):
                    gestures = await self._unwritten.get()
            except TimeoutError:
                continue
            if gestures is None:
                return
            await in_database(self._write, gestures)

    def _write(self, gestures: list[Gesture]) -> None:
        controls.record_gestures(control_id=self._control_id, gestures=gestures)
