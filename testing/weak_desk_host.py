"""`python -m testing.weak_desk_host --without=NAME,NAME ...`: a desk host whose X11 desktops lack defences.

The peer of benchmarks that say what the defences cost; every other option is the desk host's own.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from workers.desktops import registry
from workers.desktops.host import __main__ as desk_host
from workers.desktops.host_storage import HostStorage
from workers.desktops.x11.provider import X11Provider
from workers.processes.own_account import Account, go_on_as

MODULE = "testing.weak_desk_host"
DEFENCES = ("namespaces", "filter", "reading", "judging", "limits", "files", "display")
"""Not the network: the X servers of two desktops would meet in one."""


def main() -> int:
    option = sys.argv.pop(1)
    weakened = frozenset(option.removeprefix("--without=").split(",")) - {""}
    if not weakened <= set(DEFENCES):
        sys.stderr.write(f"{option}: known defences are {', '.join(DEFENCES)}\n")
        return 2

    def make(storage: HostStorage) -> X11Provider:
        return X11Provider(allows_unsafe=storage.allows_unsafe, weakened=weakened)

    def go_on(account: Account, argv: list[str], **more: Any) -> NoReturn:
        python, _, _, *options = argv
        go_on_as(account, [python, "-m", MODULE, option, *options], **more)

    registry.PROVIDERS["x11"] = make  # type: ignore[index]
    desk_host.go_on_as = go_on
    return desk_host.main()


if __name__ == "__main__":
    sys.exit(main())
