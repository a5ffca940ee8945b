"""Env hosts that joined over TLS: do they lose or double anything, and what do they cost?

Server and env hosts are namespaces with networks, host names and files of their own: each env host has its
own checkout and data folder and does not see the server's. Policy: the task's oracle, so that each trajectory
which infrastructure leaves alone scores 1. In one run:

1. one machine: the server's own env workers, all slots there
2. joined: the same slots on two env hosts
3. joined, and the web stands still for 60 s in the middle (SIGSTOP: nothing answers, nothing is refused)
4. joined, and one env host is killed in the middle and started again

Bar: in 2 to 4 each place ends with one scored trajectory of score 1, turns and screenshots complete, no
report refused; trajectories per hour of 2 at least 85 % of 1.

    python -m benchmarks.many_hosts [--places 24] [--slots 4]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.finished_runs import load_and_speed
from benchmarks.report import RESULTS, finish, print_table
from testing.linked_network import Network, network
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from testing.small_disk import NoGround, do
from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.lib.supervisor.ports import free_port

GONE = (ProcessLookupError, psutil.Error)
AWAY_S = 60.0
LIMIT_S = 1500.0
LEAST_SHARE = 0.85
BEGUN = 0.25
"""Share of the places that are done when a fault strikes."""


@dataclass
class EnvHost:
    """A joined host behind a link."""

    name: str
    network: Network
    folder: Path
    server: Instance
    slots: int
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def command(self, *arguments: str) -> list[str]:
        """A manage.py command there: own network, own name, own checkout; the server's data is hidden."""
        hide = f'hostname {self.name} && mount -t tmpfs none {self.server.folder} && exec "$@"'
        alone = ["unshare", "--mount", "--uts", "sh", "-c", hide, "sh"]
        return self.network.inside(*alone, sys.executable, "manage.py", *arguments)

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def environment(self) -> dict[str, str]:
        keep = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
        return {name: os.environ[name] for name in keep if name in os.environ} | {
            "DESKHAND_DATA_DIR": str(self.folder / "var")
        }

    def join(self, url: str, token: str) -> None:
        self.checkout.mkdir(parents=True)
        self.checkout.chmod(0o755)  # the desk host goes on as another user
        packed = subprocess.run(["git", "archive", "HEAD"], cwd=REPOSITORY, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(self.checkout)], input=packed.stdout, check=True)
        for name in (".venv", "node_modules"):
            (self.checkout / name).symlink_to((REPOSITORY / name).resolve())
        command = self.command("join", "--server", url, "--token", token)
        subprocess.run(command, cwd=self.checkout, env=self.environment, check=True)

    def start(self) -> None:
        with (self.folder / "host.log").open("ab") as output:
            self.process = subprocess.Popen(
                self.command("host", "--slots", str(self.slots), "--quiet"),
                cwd=self.checkout,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL to all of it at one moment, as a power cut."""
        assert self.process is not None
        doomed = [self.process.pid, *(one.pid for one in processes_of(self.folder / "var"))]
        for pid in doomed:
            with suppress(*GONE):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """Processes whose data folder this is."""
    found = []
    for process in psutil.process_iter():
        with suppress(*GONE):
            if process.environ().get("DESKHAND_DATA_DIR") == str(data_dir):
                found.append(process)
    return found


class Server:
    """What the benchmark reads and queues on the server's database."""

    def __init__(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        import django

        django.setup()
        from django.contrib.auth.models import User

        from webapp.accounts.models import Team

        self.team = Team.objects.order_by("pk").first()
        self.user = User.objects.order_by("pk").first()

    def token(self) -> str:
        from webapp.worker_door.joining import make_token

        return make_token(user=self.user)

    def queue(self, count: int) -> list[int]:
        """Groups of one oracle trajectory each."""
        from webapp.experiments.models import TaskRecord
        from webapp.trajectories.lifecycle import GroupSpec, create_group

        tasks = list(TaskRecord.objects.order_by("pk")[:8])
        return [
            create_group(
                request=GroupSpec(
                    task=tasks[number % len(tasks)],
                    size=1,
                    purpose=Purpose.VERIFICATION,
                    source=Source.ORACLE,
                ),
                team_id=self.team.pk,
            ).pk
            for number in range(count)
        ]

    def wait_for_workers(self, count: int) -> None:
        from webapp.fleet.models import Worker, WorkerStatus

        deadline = time.monotonic() + LIMIT_S
        while Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE).count() < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not {count} env workers after {LIMIT_S:g} s")
            time.sleep(0.5)

    def num_finished(self, groups: list[int]) -> int:
        from webapp.trajectories.models import Group

        return Group.objects.filter(pk__in=groups).exclude(finished_at=None).count()

    def outcome(self, groups: list[int]) -> dict[str, Any]:
        """What became of the places."""
        from webapp.fleet.models import JoinedHost
        from webapp.trajectories.models import Frame, Trajectory

        rows = Trajectory.objects.filter(group__in=groups)
        scored = rows.filter(status__in=(TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED))
        incomplete = 0
        for row in scored:
            turns = list(row.turns.all())
            frames = {turn.frame for turn in turns} | {row.final_frame}
            known = Frame.objects.filter(team_id=row.team_id, sha256__in=frames).count()
            whole = [turn.index for turn in turns] == list(range(row.num_turns)) and known == len(frames)
            incomplete += not (whole and all(turn.completed_at for turn in turns))
        hosts = scored.values_list("worker__host", flat=True)
        return {
            "places": len(groups),
            "scored": scored.count(),
            "places_scored": scored.values("group").distinct().count(),
            "score_1": scored.filter(score=1.0).count(),
            "incomplete": incomplete,
            "errored": sorted(rows.exclude(error_kind="").values_list("error_kind", flat=True)),
            "by_host": {host: list(hosts).count(host) for host in sorted(set(hosts))},
            "refused": sum(JoinedHost.objects.values_list("num_refused", flat=True)),
        }


def run_places(server: Server, count: int, strike: Callable[[], None] | None = None) -> dict[str, Any]:
    """Queue, wait until all are final; `strike` once a quarter is."""
    started = time.monotonic()
    groups = server.queue(count)
    while (done := server.num_finished(groups)) < count:
        if strike and done >= BEGUN * count:
            strike()
            strike = None
        if time.monotonic() - started > LIMIT_S:
            break
        time.sleep(0.25)
    wall_s = time.monotonic() - started
    found = server.outcome(groups) | {"wall_s": round(wall_s, 1)}
    found["per_hour"] = round(3600 * found["scored"] / wall_s, 1)
    whole = found["scored"] == found["places_scored"] == found["score_1"] == count
    return found | {"passed": whole and not found["incomplete"] and not found["refused"]}


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
    with Instance(slots=options.slots, without=["gpu"]) as deskhand:
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


def joined(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Phases 2 to 4 on one server with two env hosts. Raises NoGround."""
    with ExitStack() as stack:
        links = [stack.enter_context(network(number)) for number in (0, 1)]
        address = links[0].near
        for link in links:
            do("ip", "-n", link.name, "route", "add", "default", "via", link.near)
        port = free_port()
        deskhand = Instance(
            without=["gpu", "env", "deskhost"],
            env={"DESKHAND_HOSTS_ADDRESS": address, "DESKHAND_HOSTS_PORT": str(port)},
        )
        stack.enter_context(deskhand)
        deskhand.manage("import_tasks", "first-desk")
        server = Server(deskhand.environment)
        hosts = []
        for number, link in enumerate(links):
            folder = Path(tempfile.mkdtemp(prefix=f"dh-far{number}-", dir="/tmp"))
            folder.chmod(0o755)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            host = EnvHost(f"far{number}", link, folder, deskhand, options.slots // 2)
            host.join(f"https://{address}:{port}", server.token())
            stack.callback(host.stop)
            host.start()
            hosts.append(host)

        def kill_one() -> None:
            hosts[0].kill()
            hosts[0].start()

        server.wait_for_workers(len(hosts))
        run_places(server, 2 * options.slots)  # both have desktops now, as the one machine has
        found = {"joined": run_places(server, options.places)}
        found["web away"] = run_places(server, options.places, lambda: web_away(deskhand))
        found["host killed"] = run_places(server, options.places, kill_one)
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
        phases = {"one machine": one_machine(options)} | joined(options)
    except NoGround as exc:
        sys.stderr.write(f"many_hosts: {exc}\nIt has to run as root, with iproute2 installed.\n")
        return 2
    header = ["phase", "places", "scored", "score 1", "incomplete", "refused", "wall s", "per hour", "passed"]
    names = ("places", "scored", "score_1", "incomplete", "refused", "wall_s", "per_hour", "passed")
    print_table(header, [[phase, *(row[name] for name in names)] for phase, row in phases.items()])
    share = phases["joined"]["per_hour"] / phases["one machine"]["per_hour"]
    figures = {"phases": phases, "share_of_one_machine": round(share, 3), "slots": options.slots}
    passed = share >= LEAST_SHARE and all(row["passed"] for row in phases.values())
    return finish(
        "many_hosts", figures | {"load": [before, load_and_speed()]}, passed=passed, results=options.results
    )


if __name__ == "__main__":
    sys.exit(main())
