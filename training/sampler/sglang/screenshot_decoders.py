"""Screenshots decoded by small processes of their own.

In the policy server's process they would stand in line for the interpreter lock, ten milliseconds each,
whenever a batch of turns is answered at once and all of them send their next screenshot.

    parent -> child:  one line of JSON {path, width, height, resample, num_bytes}, then the PNG
    child -> parent:  one line, empty or what was wrong

`python -m training.sampler.sglang.screenshot_decoders` is the child; it ends when its input does. It loads no
torch, so it starts quickly.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from training.untrusted.pictures import open_picture

MAX_PROCESSES = 8
REPOSITORY = Path(__file__).resolve().parents[3]
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**28), "MALLOC_TRIM_THRESHOLD_": str(2**29)}
"""glibc then keeps the megabytes of one screen for the next: giving them back and taking them anew, page by
page, cost as much as the decoding."""


class ScreenshotDecoders:
    """The parent's side; for one event loop. Processes are started when they are first needed."""

    def __init__(self, num_processes: int = 0) -> None:
        """0 = one per two cores that we may use, at most MAX_PROCESSES."""
        wanted = num_processes or min(MAX_PROCESSES, max(1, len(os.sched_getaffinity(0)) // 2))
        self._free: asyncio.Queue[asyncio.subprocess.Process | None] = asyncio.Queue()
        for _ in range(wanted):
            self._free.put_nowait(None)
        self._children: list[asyncio.subprocess.Process] = []

    async def write(self, png: bytes, path: Path, size: tuple[int, int], resample: int) -> None:
        """The PNG at (width, height) as [height, width, 3], uint8, in `path`. Raises OSError."""
        child = await self._free.get()
        try:
            if child is None or child.returncode is not None:
                child = await self._start()
            problem = await _ask(child, png, path, size, resample)
        finally:
            self._free.put_nowait(child)
        if problem:
            raise OSError(problem)

    async def close(self) -> None:
        for child in self._children:
            if child.returncode is None:
                child.kill()
            await child.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "training.sampler.sglang.screenshot_decoders"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
            env=os.environ | KEEP_MEMORY,
        )
        self._children.append(child)
        return child


async def _ask(
    child: asyncio.subprocess.Process, png: bytes, path: Path, size: tuple[int, int], resample: int
) -> str:
    """What was wrong; empty when the file is there. A cancelled question leaves its child in the middle."""
    assert child.stdin is not None
    assert child.stdout is not None
    width, height = size
    question = {
        "path": str(path),
        "width": width,
        "height": height,
        "resample": int(resample),
        "num_bytes": len(png),
    }
    try:
        child.stdin.write(json.dumps(question).encode() + b"\n" + png)
        await child.stdin.drain()
        answer = await child.stdout.readline()
    except asyncio.CancelledError:
        child.kill()
        raise
    except ConnectionError:
        answer = b""
    return answer.decode().strip() if answer else "the process that decodes screenshots ended"


def write_pixels(png: bytes, path: str, size: tuple[int, int], resample: int) -> None:
    """The file appears whole or not at all. Raises OSError for what is no image."""
    with open_picture(png) as image:
        whole = image.convert("RGB")
    pixels = np.asarray(whole if whole.size == size else whole.resize(size, resample))
    partial = f"{path}.part"
    with open(partial, "wb") as file:
        np.save(file, pixels)
    os.replace(partial, path)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Until the questions end."""
    while line := questions.readline():
        asked = json.loads(line)
        problem = ""
        try:
            size = (asked["width"], asked["height"])
            write_pixels(questions.read(asked["num_bytes"]), asked["path"], size, asked["resample"])
        except (OSError, ValueError, SyntaxError) as error:
            problem = f"{type(error).__name__}: {error}".replace("\n", " ")
        answers.write(problem.encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
