"""`python -m workers.desktops.host --state-dir DIR --socket PATH`: the desk host, until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from workers.desktops.contract import EnvError
from workers.desktops.host.host import REBUILD_EVERY, DeskHost
from workers.desktops.host.server import Server
from workers.desktops.host.warm_pool import IDLE_S, SLOW_RESET_S, WARM_LIMIT, WarmPool
from workers.desktops.host_storage import HostStorage, SnapshotLimits


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m workers.desktops.host", description=__doc__)
    parser.add_argument(
        "--state-dir", type=Path, required=True, help="private folder of this host; keep it short"
    )
    parser.add_argument("--socket", type=Path, required=True, help="unix socket to serve")
    parser.add_argument("--max-desktops", type=int, default=16)
    parser.add_argument(
        "--rebuild-every", type=int, default=REBUILD_EVERY, help="resets between full rebuilds"
    )
    parser.add_argument(
        "--warm-limit", type=int, default=WARM_LIMIT, help="desktops of one kind kept ready without a lease"
    )
    parser.add_argument(
        "--idle-s",
        type=float,
        default=IDLE_S,
        help="seconds after which an unneeded desktop is given up",
    )
    parser.add_argument(
        "--slow-reset-s",
        type=float,
        default=SLOW_RESET_S,
        help="where resets take longer, a lease is moved to a clean desktop",
    )
    parser.add_argument("--images", type=Path, help="virtual machines' base images (default DATA_DIR/images)")
    limits = SnapshotLimits()
    parser.add_argument(
        "--max-snapshots", type=int, default=limits.count, help="states of running machines kept at most"
    )
    parser.add_argument("--snapshot-mb", type=int, default=limits.mb, help="MiB that they may take together")
    parser.add_argument("--templates", type=Path, help="their paused templates (default DATA_DIR/templates)")
    return parser.parse_args(argv)


def storage(options: argparse.Namespace) -> HostStorage:
    """Where images and templates are: as said, else in the installation's data folder."""
    data_dir = Path(os.environ.get("DESKHAND_DATA_DIR") or options.state_dir).resolve()
    images = os.environ.get("DESKHAND_IMAGES_DIR") or data_dir / "images"
    return HostStorage(
        images=Path(options.images or images).resolve(),
        templates=(options.templates or data_dir / "templates").resolve(),
        snapshots=options.state_dir.resolve() / "snapshots",
        snapshot_limits=SnapshotLimits(max(1, options.max_snapshots), max(1, options.snapshot_mb)),
    )


async def run(options: argparse.Namespace) -> None:
    host = DeskHost(
        options.state_dir.resolve(),
        max_desktops=options.max_desktops,
        rebuild_every=options.rebuild_every,
        pool=WarmPool(limit=options.warm_limit, idle_s=options.idle_s, slow_reset_s=options.slow_reset_s),
        storage=storage(options),
    )
    server = Server(host)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stopping.set)
    await server.serve(options.socket)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s deskhost %(levelname)s %(message)s")
    logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)  # it logs the end of every machine
    try:
        asyncio.run(run(parse()))
    except EnvError as exc:
        sys.stderr.write(f"desk host: {exc}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
