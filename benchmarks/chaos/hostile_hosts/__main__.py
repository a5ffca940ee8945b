"""What a joined host can do beyond its own: attacks as real programs, against an installation over TLS.

`manage.py up` serves the port of hosts; each attack is a program in a network of its own that holds nothing
but the identity of one hostile host. It is run against the tree as it is, where none may succeed, and against
a copy of the tree without its defence (`defences.py`), where it must. The dispatcher is left out, so that
nothing but the attack changes rows. Needs root.

Bar: at least 60 attacks; none succeeds; each does without its defence.

    python -m benchmarks.chaos.hostile_hosts
    python -m benchmarks.chaos.hostile_hosts --kind policy      # of one kind, without a result
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.chaos.hostile_hosts import program  # noqa: F401  (all attacks are in the list)
from benchmarks.chaos.hostile_hosts.defences import DEFENCES, turned_off
from benchmarks.chaos.hostile_hosts.scene import ATTACKS, Attack
from benchmarks.report import finish, print_table
from scripts.mutants.tree_copy import TreeCopy
from testing.linked_network import Network
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from testing.routed_networks import routed_networks
from webapp.lib.supervisor.ports import free_port

BAR = 60
WITHOUT = ["gpu", "env", "deskhost", "dispatcher"]


class Site:
    """The installation, and the network of the hostile host."""

    def __init__(self, server: Instance, link: Network) -> None:
        from benchmarks.chaos.hostile_hosts.stages import Port
        from webapp.lib.host_links.certificates import Authority

        self.server, self._link = server, link
        own = server.env
        authority = Authority.of(server.folder / "secrets").certificate
        self._port = Port(
            address=own["DESKHAND_HOSTS_ADDRESS"], port=int(own["DESKHAND_HOSTS_PORT"]), authority=authority
        )

    def run(self, found: Attack, tree: Path, policy: dict[str, Any]) -> list[str]:
        """Where the attack succeeded."""
        from benchmarks.chaos.hostile_hosts.stages import World

        world = World.arranged(found)
        scene = world.scene(self._port, policy | {"tree": str(tree)})
        done = subprocess.run(
            self._link.inside(sys.executable, "-m", "benchmarks.chaos.hostile_hosts.program"),
            input=json.dumps({"attack": found.name, "scene": asdict(scene)}),
            cwd=REPOSITORY,
            text=True,
            capture_output=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise RuntimeError(f"{found.name}: {done.stderr[-2000:]}")
        return sorted({*json.loads(done.stdout.splitlines()[-1]), *world.changed()})


def run_all(site: Site, attacks: Sequence[Attack], tree: Path, link: Network) -> dict[str, list[str]]:
    """Attack -> where it succeeded."""
    from benchmarks.chaos.hostile_hosts.extras import extras_of

    found: dict[str, list[str]] = {}
    for stage in dict.fromkeys(one.stage for one in attacks):
        with extras_of(stage, tree, link) as policy:
            for one in attacks:
                if one.stage == stage:
                    found[one.name] = site.run(one, tree, policy)
    return found


@contextmanager
def serving(server: Instance, tree: Path) -> Iterator[None]:
    """The installation runs from this tree meanwhile."""
    server.tree = tree
    server.start()
    try:
        yield
    finally:
        server.stop()


def measure(kind: str, folder: Path) -> list[dict[str, Any]]:
    """A row of each attack."""
    attacks = [one for one in ATTACKS.values() if kind in ("", one.kind)]
    with routed_networks(1) as (link,):
        own = {"DESKHAND_HOSTS_ADDRESS": link.near, "DESKHAND_HOSTS_PORT": str(free_port())}
        server = Instance(data_dir=folder / "var", without=WITHOUT, env=own)
        server.folder.mkdir()
        with serving(server, REPOSITORY):
            os.environ.update(server.environment)
            import django

            django.setup()
            site = Site(server, link)
            held = run_all(site, attacks, REPOSITORY, link)
        copy = TreeCopy(folder / "copy")
        bare: dict[str, list[str]] = {}
        for defence in DEFENCES:
            group = [one for one in attacks if one.defence == defence]
            if group:
                with turned_off(copy, defence), serving(server, copy.folder):
                    bare |= run_all(site, group, copy.folder, link)
                print(
                    f"without {defence}: {sum(map(bool, (bare[one.name] for one in group)))} of {len(group)}",
                    flush=True,
                )
    return [
        {"kind": one.kind, "attack": one.name, "defence": one.defence, "succeeded on": held[one.name]}
        | {"without its defence": bare[one.name]}
        for one in attacks
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", default="", choices=sorted({one.kind for one in ATTACKS.values()}))
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dh-", dir="/tmp") as folder:
        rows = measure(options.kind, Path(folder))
    print_table(
        ["kind", "attack", "succeeded", "without its defence"],
        [
            [row["kind"], row["attack"], row["succeeded on"] or "no", row["without its defence"] or "NO"]
            for row in rows
        ],
    )
    won = [row["attack"] for row in rows if row["succeeded on"]]
    void = [row["attack"] for row in rows if not row["without its defence"]]
    figures = {"attacks": len(rows), "succeeded": won, "void": void, "rows": rows}
    figures |= {"took_s": round(time.monotonic() - started), "load": round(os.getloadavg()[0], 1)}
    passed = not won and not void and len(rows) >= BAR
    if options.kind:
        print(json.dumps({"attacks": len(rows), "succeeded": won, "void": void}))
        return 0 if not won and not void else 1
    return finish("hostile_hosts", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
