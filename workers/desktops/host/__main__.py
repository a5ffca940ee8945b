"""`python -m workers.desktops.host --state-dir DIR --socket PATH`: the desk host, until SIGTERM or SIGINT.

Started by root, it goes on as a user of its own before it makes any desktop.
"""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from pathlib import Path

from training.log_lines import VARIABLE as LOG_VARIABLE
from training.log_lines import LogFormat, set_up_logging
from training.outgoing.secret_store import variable_of
from workers.desktops.contract import EnvError
from workers.desktops.host.host import REBUILD_EVERY, DeskHost
from workers.desktops.host.server import Server, refuse_second_host
from workers.desktops.host.warm_pool import IDLE_S, SLOW_RESET_S, WARM_LIMIT, WarmPool
from workers.desktops.host_storage import UNSAFE_OPTION, HostStorage, SnapshotLimits
from workers.desktops.windows.image_settings import login_secrets, secrets_folder
from workers.desktops.x11.system_root import desktop_root
from workers.processes.cgroups import hand_over
from workers.processes.own_account import NoAccount, give, go_on_as, lend, own_account
from workers.processes.unix_socket import listen_unix

log = logging.getLogger("deskhost")
ROOT = Path(__file__).resolve().parents[3]


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
    parser.add_argument(
        UNSAFE_OPTION,
        action="store_true",
        help="stay root when root starts it, and make desktops that are not isolated where no sandbox works",
    )
    parser.add_argument("--socket-handle", type=int, help=argparse.SUPPRESS)
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
        allows_unsafe=options.unsafe_desktops,
    )


def give_up_root(options: argparse.Namespace) -> None:
    """Prepare what only root can (socket, folders, control groups), then go on as the desktops' user.

    Does not return. Raises NoAccount or EnvError.
    """
    account = own_account()
    refuse_second_host(options.socket)
    state_dir, places = options.state_dir.resolve(), storage(options)
    # In the state folder it makes its own; elsewhere it may not.
    elsewhere = [path for path in (places.templates, places.images) if path.parent != state_dir]
    give([state_dir, *elsewhere], account)
    logins, secrets = login_secrets(places.images), secrets_folder(places.images)
    lend(secrets, logins, account)
    hand_over(account.uid, account.gid)
    listener = listen_unix(options.socket)
    listener.set_inheritable(True)
    argv = [sys.executable, "-m", "workers.desktops.host", *sys.argv[1:]]
    shown = [ROOT, state_dir, places.templates, places.images, desktop_root()]
    shown += [secrets] if logins else []
    log.info("root starts this desk host: it goes on as user %s", account.name)
    go_on_as(
        account,
        [*argv, "--socket-handle", str(listener.fileno())],
        shown=[path for path in shown if path.is_dir()],
        home=state_dir,
        passed=map(variable_of, logins),
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
    listener = None if options.socket_handle is None else socket.socket(fileno=options.socket_handle)
    await server.serve(options.socket, listener)


def main() -> int:
    set_up_logging(
        "%(asctime)s deskhost %(levelname)s %(message)s", LogFormat.read(os.environ.get(LOG_VARIABLE))
    )
    logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)  # it logs the end of every machine
    os.umask(0o022)  # of our starter's files others read nothing; a desktop's own users share theirs
    options = parse()
    try:
        if os.geteuid() == 0 and not options.unsafe_desktops:
            give_up_root(options)
        asyncio.run(run(options))
    except (EnvError, NoAccount) as exc:
        sys.stderr.write(f"desk host: {exc}\n")
        if isinstance(exc, NoAccount):
            sys.stderr.write(f"desk host: {UNSAFE_OPTION} starts it all the same, with weak desktops\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
