"""The least that can show desktops in a browser: what the live viewer is measured beside.

Desktops of the same host do the same; each new screen becomes a JPEG and goes to the one browser that
watches, by a WebSocket, with the time at which it was taken. No database, no queue, no files, no accounts.

    python -m benchmarks.web.barest_viewer SOCKET NUM_DESKTOPS NUM_TURNS     # prints its port
"""

from __future__ import annotations

import os
import queue
import struct
import sys
import threading
import time
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from benchmarks.web.typing_script import script
from webapp.trajectories.screenshot_jpegs import jpeg_of
from workers.desktops import frame_images
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient, LeaseKeeper
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.screen_settling import settle_limits_for, wait_until_settled

TTL_S = 30
Message = bytes
"""The time in seconds since the epoch as a big-endian double, then the JPEG."""

PAGE = """(port) => {
    window.painted = [];
    document.body.innerHTML = '<div id="screen"></div>';
    const socket = new WebSocket(`ws://127.0.0.1:${port}`);
    socket.binaryType = "arraybuffer";
    let newest = 0;
    socket.onmessage = async ({ data }) => {
        const receivedMs = Date.now(), takenMs = new DataView(data).getFloat64(0) * 1000;
        const image = new Image();
        const number = ++newest;
        image.src = URL.createObjectURL(new Blob([data.slice(8)], { type: "image/jpeg" }));
        await image.decode();
        if (number !== newest) return;
        document.getElementById("screen").replaceChildren(image);
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => window.painted.push([Date.now() - takenMs, receivedMs - takenMs]);
            port2.postMessage(0);
        });
    };
}"""
"""Shows what comes, and notes how old it was when painted and when received, as the viewer does."""


class Watched:
    """A viewer of a desktop gets its screens; there is at most one."""

    def __init__(self) -> None:
        self.watcher: queue.SimpleQueue[Message] | None = None

    def show(self, jpeg: bytes, taken_at: float) -> None:
        if self.watcher is not None:
            self.watcher.put(struct.pack(">d", taken_at) + jpeg)


def work(client: DeskHostClient, watched: Watched, num_turns: int) -> None:
    """One desktop types and waits, over and over."""
    lease = client.acquire("x11", DesktopSpec(), holder="barest", ttl_s=TTL_S)
    with LeaseKeeper(client, lease), DesktopEnv(client, lease) as env:
        while True:
            env.reset()
            env.agent.launch(["mousepad"])
            env.wait_for_window("Mousepad")
            before = ""
            for action in script(num_turns):
                env.console.forget_changes()
                env.console.perform(action)
                wait_until_settled(env.console, settle_limits_for(action.kind))
                taken_at = time.time()
                image = env.console.image()
                digest = frame_images.digest(image)
                if digest != before:
                    watched.show(jpeg_of(image), taken_at)
                before = digest


def main() -> None:
    socket, num_desktops, num_turns = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    desktops = [Watched() for _ in range(num_desktops)]
    turn = iter(range(10**9))

    def watch(connection: ServerConnection) -> None:
        """Each new browser page watches the next desktop."""
        screens: queue.SimpleQueue[Message] = queue.SimpleQueue()
        watched = desktops[next(turn) % num_desktops]
        watched.watcher = screens
        try:
            while True:
                connection.send(screens.get())
        except ConnectionClosed:
            watched.watcher = None

    def run(watched: Watched) -> None:
        try:
            with DeskHostClient(socket) as client:
                work(client, watched, num_turns)
        finally:
            os._exit(1)  # with a desktop less it would be no fair match

    for watched in desktops:
        threading.Thread(target=run, args=(watched,), daemon=True).start()
    with serve(watch, "127.0.0.1", 0, compression=None) as server:
        print(server.socket.getsockname()[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()  # until the benchmark ends it
        os._exit(0)  # without a farewell to browsers and desktops


if __name__ == "__main__":
    main()
