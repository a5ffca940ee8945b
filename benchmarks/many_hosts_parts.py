"""What the benchmark of many hosts is made of: env hosts that joined, and the server's database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from testing.linked_network import Network
from testing.paths import REPOSITORY
from testing.private_installation import Instance
from training.contracts.types import Purpose, Source, TrajectoryStatus

GONE = (ProcessLookupError, psutil.Error)
WORKERS_WITHIN_S = 1500.0
SCORED = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED)


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

    def restart(self) -> None:
        self.kill()
        self.start()

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

        deadline = time.monotonic() + WORKERS_WITHIN_S
        while Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE).count() < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not {count} env workers after {WORKERS_WITHIN_S:g} s")
            time.sleep(0.5)

    def num_finished(self, groups: list[int]) -> int:
        from webapp.trajectories.models import Group

        return Group.objects.filter(pk__in=groups).exclude(finished_at=None).count()

    def outcome(self, groups: list[int]) -> dict[str, Any]:
        """What became of the places."""
        from webapp.fleet.models import JoinedHost
        from webapp.trajectories.models import Frame, Trajectory

        rows = Trajectory.objects.filter(group__in=groups)
        scored = rows.filter(status__in=SCORED)
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

    def sampled_for(self, experiment: int) -> dict[str, Any]:
        """Its trajectories by status and host, and groups with more scored ones than places."""
        from django.db.models import Count, F, Q

        from webapp.trajectories.models import Group, Trajectory

        kinds = Trajectory.objects.filter(group__experiment=experiment).values_list("status", "worker__host")
        counted = kinds.annotate(number=Count("pk")).order_by("status", "worker__host")
        is_scored = Q(trajectories__status__in=SCORED)
        groups = Group.objects.filter(experiment=experiment)
        scored = groups.annotate(number=Count("trajectories", filter=is_scored))
        return {
            "trajectories": {f"{status} on {host}": number for status, host, number in counted},
            "twice": scored.filter(number__gt=F("size")).count(),
        }
