"""Env hosts that joined over TLS, and gpu hosts: do they lose or double anything, and what do they cost?

The server, two env hosts and two gpu hosts: networks, host names and files of their own. An env host has its
own checkout and data folder; no host sees the server's. gpu hosts have the server's PostgreSQL and Redis, and
a folder with screenshots and checkpoints in common. Reports and jobs of env hosts, the policy server and what
ranks say to each other go by TLS. In one run, policy of 1 to 4: the task's oracle, so that each trajectory
which infrastructure leaves alone scores 1:

1. one machine: the server's own env workers, all slots there
2. joined: the same slots on two env hosts
3. joined, and the web stands still for 60 s in the middle (SIGSTOP: nothing answers, nothing is refused)
4. joined, and each env host is killed once in the middle and started again
5. First desk with three small steps, on all four hosts, to its end; who listens on the networks meanwhile
6. an experiment over both gpu hosts; the second one is killed once, then the first, and started again
7. five GRPO steps over recorded samples: ranks of two hosts, and two ranks of one

Bar: in 2 to 4 each place ends with one scored trajectory of score 1, turns and screenshots complete, no
report refused; trajectories per hour of 2 at least 85 % of 1. In 5 and 6 each step once, by both gpu hosts,
no place scored twice; behind the links only policy server and mesh listen. In 7 loss and gradient norm differ
by 1e-5 at most.

    python -m benchmarks.many_hosts [--places 24] [--slots 4]
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.finished_runs import load_and_speed
from benchmarks.many_hosts_gang import first_desk, lose_each, same_numbers
from benchmarks.many_hosts_parts import Server
from benchmarks.report import RESULTS, finish, print_table
from testing.joined_machine import JoinedMachine, processes_of
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from testing.private_postgres import private_cluster
from testing.routed_networks import routed_networks
from testing.small_disk import NoGround
from testing.two_gpu_hosts import TwoGpuHosts, redis_on
from webapp.lib.supervisor.ports import free_port

AWAY_S = 60.0
LIMIT_S = 1500.0
LEAST_SHARE = 0.85
BEGUN = 0.25
"""Share of the places that are done when a fault strikes."""


def run_places(server: Server, count: int, *strikes: Callable[[], None]) -> dict[str, Any]:
    """Queue, wait until all are final; one of `strikes` each time that another quarter is."""
    started, waiting = time.monotonic(), list(strikes)
    groups = server.queue(count)
    while (done := server.num_finished(groups)) < count:
        if waiting and done >= BEGUN * count * (1 + len(strikes) - len(waiting)):
            waiting.pop(0)()
        if time.monotonic() - started > LIMIT_S:
            break
        time.sleep(0.25)
    wall_s = time.monotonic() - started
    found = server.outcome(groups) | {"wall_s": round(wall_s, 1)}
    found["per_hour"] = round(3600 * found["scored"] / wall_s, 1)
    whole = found["scored"] == found["places_scored"] == found["score_1"] == count
    return found | {"passed": whole and not found["incomplete"] and not found["refused"] and not waiting}


def web_away(deskhand: Instance) -> None:
    """The process that serves joined hosts stands still."""
    found = [one for one in processes_of(deskhand.folder) if "--ssl-certfile" in one.cmdline()]
    assert found, "no process serves joined hosts"
    for process in found:
        process.suspend()
    time.sleep(AWAY_S)
    for process in found:
        process.resume()


def one_machine(options: argparse.Namespace) -> dict[str, Any]:
    with (
        private_cluster() as database,
        Instance(slots=options.slots, without=["gpu"], env={"DATABASE_URL": database}) as deskhand,
    ):
        deskhand.manage("import_tasks", "first-desk")
        return run_in_child(deskhand, "one", options)


def run_in_child(deskhand: Instance, what: str, options: argparse.Namespace) -> dict[str, Any]:
    """Django is set up once per process: the one-machine figure is taken in another one."""
    command = [sys.executable, "-m", "benchmarks.many_hosts", "--only", what]
    command += ["--places", str(options.places), "--slots", str(options.slots)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=deskhand.environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def joined(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, Any]]:
    """Phases 2 to 7 on one server with two env hosts and two gpu hosts. Raises NoGround."""
    with ExitStack() as stack:
        links = stack.enter_context(routed_networks(4))
        address, port = links[0].near, free_port()
        stack.enter_context(private_cluster(address=address, clients="10.251.0.0/16"))
        shared = {
            "DATABASE_URL": f"postgresql://deskhand@{address}/deskhand",
            "REDIS_URL": stack.enter_context(redis_on(address)),
            "DESKHAND_CHECKPOINT_DIRS": str(folder / "shared"),
        }
        own = {"DESKHAND_HOSTS_ADDRESS": address, "DESKHAND_HOSTS_PORT": str(port)}
        deskhand = Instance(without=["gpu", "env", "deskhost"], env=shared | own, start_timeout_s=500)
        (folder / "media").mkdir()
        (deskhand.folder / "media").symlink_to(folder / "media")
        stack.enter_context(deskhand)
        deskhand.manage("import_tasks", "first-desk")
        server = Server(deskhand.environment)
        hosts = []
        for number, link in enumerate(links[:2]):
            place = folder / f"far{number}"
            place.mkdir(mode=0o755)
            host = JoinedMachine(f"far{number}", link, place, deskhand, slots=options.slots // 2)
            host.join()
            stack.callback(host.stop)
            host.start()
            hosts.append(host)
        server.wait_for_workers(len(hosts))
        run_places(server, 2 * options.slots)  # both have desktops now, as the one machine has
        found = {"joined": run_places(server, options.places)}
        found["web away"] = run_places(server, options.places, lambda: web_away(deskhand))
        found["hosts killed"] = run_places(server, options.places, *(host.restart for host in hosts))
        places = {link.far: link for link in links[2:]}
        pool = TwoGpuHosts.at(
            deskhand, folder, shared | {"DESKHAND_HOSTS_ADDRESS": ""}, places, sees_control=False
        )
        for gpu_host in pool.hosts:
            stack.callback(gpu_host.kill)
            gpu_host.start()
        found["First desk"] = first_desk(pool, hosts, server)
        found["gpu hosts killed"] = lose_each(pool)
        found["the same numbers"] = same_numbers(links[2:], folder)
        return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--places", type=int, default=24, help="trajectories per phase")
    arguments.add_argument("--slots", type=int, default=4, help="desktops in use at once, of all hosts")
    arguments.add_argument("--only", choices=["one"], help=argparse.SUPPRESS)
    arguments.add_argument("--results", type=Path, default=RESULTS, help="folder for the result file")
    options = arguments.parse_args()
    if options.only:
        server = Server({})
        run_places(server, 2 * options.slots)
        print(json.dumps(run_places(server, options.places)))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what it started
    before = load_and_speed()
    try:
        with tempfile.TemporaryDirectory(prefix="dh-many-", dir="/tmp") as folder:
            Path(folder).chmod(0o755)  # desk hosts go on as another user
            phases = {"one machine": one_machine(options)} | joined(options, Path(folder))
    except NoGround as exc:
        sys.stderr.write(f"many_hosts: {exc}\nIt has to run as root, with iproute2 installed.\n")
        return 2
    header = ["phase", "places", "scored", "score 1", "incomplete", "refused", "wall s", "per hour", "passed"]
    names = ("places", "scored", "score_1", "incomplete", "refused", "wall_s", "per_hour", "passed")
    print_table(header, [[phase, *(row.get(name, "") for name in names)] for phase, row in phases.items()])
    share = phases["joined"]["per_hour"] / phases["one machine"]["per_hour"]
    figures = {"phases": phases, "share_of_one_machine": round(share, 3), "slots": options.slots}
    passed = share >= LEAST_SHARE and all(row["passed"] for row in phases.values())
    return finish(
        "many_hosts", figures | {"load": [before, load_and_speed()]}, passed=passed, results=options.results
    )


if __name__ == "__main__":
    sys.exit(main())
