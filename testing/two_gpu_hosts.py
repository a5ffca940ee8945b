"""Two gpu hosts with networks, names and data folders of their own, for one experiment over both. Needs root.

They share the folders that the product asks for: `checkpoints.directory`, and screenshots on hosts that did
not join over HTTPS.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testing import watch_installation
from testing.experiment_runs import FINAL, describe, launch
from testing.gpu_host import GpuHost
from testing.joined_machine import JoinedMachine
from testing.linked_network import Network
from testing.private_installation import Instance
from testing.watch_installation import rows
from webapp.lib.supervisor.ports import free_port
from webapp.lib.supervisor.redis_server import find_redis

wait_for = partial(watch_installation.wait_for, patience_s=1800, poll_s=1.0)
BOTH = ["gpu-a", "gpu-b"]
SFT = ("sft/loss", "sft/grad_norm")
SFT_STEPS = 10
STEP = "rollout/reward_mean"
"""A metric that each step of the GRPO stage has."""


@contextmanager
def redis_on(address: str) -> Iterator[str]:
    """Its URL, for hosts of both networks."""
    port = free_port()
    command = [find_redis(), "--bind", address, "--port", str(port), "--requirepass", "s", "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://:s@{address}:{port}/0"
    finally:
        process.kill()
        process.wait()


@dataclass
class TwoGpuHosts:
    """A control, and gpu hosts A and B: networks, names and data folders of their own."""

    control: Instance
    hosts: Sequence[GpuHost | JoinedMachine]
    folder: Path
    """Holds their folders, and `shared`, of all of them."""

    @classmethod
    def beside_one_link(cls, stack: ExitStack, link: Network, folder: Path, database: str) -> TwoGpuHosts:
        """On the control's database and Redis, with its screenshots: A in its network, B behind the link.

        `database`: URL of one that both networks reach.
        """
        redis = stack.enter_context(redis_on(link.near))
        shared = folder / "shared"
        shared.mkdir()
        variables = {
            "REDIS_URL": redis,
            "DATABASE_URL": database,
            "DESKHAND_CHECKPOINT_DIRS": str(shared),
        }
        control = Instance(slots=2, without=["gpu"], env=variables)
        stack.enter_context(control)
        control.manage("import_tasks", "first-desk")
        hosts = []
        for name, address, place in zip(BOTH, (link.near, link.far), (None, link), strict=True):
            own = folder / name
            own.mkdir()
            (own / "media").symlink_to((control.folder / "media").resolve())
            own_variables = variables | {
                "DESKHAND_POLICY_ADDRESS": address,
                "DESKHAND_TRAIN_NETWORK": address,
            }
            hosts.append(GpuHost(name, own, control, own_variables, place))
        return cls(control, hosts, folder)

    def launch(self, num_hosts: int, *, least_hosts: int = 0, sft: bool = False, steps: int) -> int:
        """One of `First desk`'s kinds, with a model that knows nothing; its number."""
        config = {
            "model": {"path": "tiny-random"},
            "tasks": {"families": ["note"]},
            "desktops": {"num_desktops": 2, "max_turns": 2},
            "sampling": {"max_completion_tokens": 8},
            "sft": {"enabled": sft, "demonstrations_per_family": 2, "batch_size": 2, "max_steps": SFT_STEPS},
            # Each step reads screenshots on both hosts, whatever the two trajectories score.
            "algorithm": {"group_size": 2, "groups_per_step": 1, "num_steps": steps}
            | {"skip_zero_variance": False},
            "optimiser": {"num_processes": 2, "num_hosts": num_hosts, "least_hosts": least_hosts},
            "evaluation": {"num_tasks": 0},
            "checkpoints": {"every": 1, "directory": str(self.folder / "shared")},
        }
        file = self.folder / "config.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        return launch(self.control, "--config", str(file), "--anyway")

    def attempts(self, experiment: int) -> list[tuple[str, list[str]]]:
        """(status, hosts) of each."""
        found = describe(self.control, experiment)["attempts"]
        return [(one["status"], [name.partition("@")[2] for name in one["workers"]]) for one in found]

    def steps(self, experiment: int) -> list[tuple[int, int]]:
        """(step, attempt) of what was trained on."""
        query = f"select step, attempt from experiments_metricpoint where name = '{STEP}'"
        return rows(self.control, f"{query} and experiment_id = {experiment} order by step")

    def end_of(self, experiment: int) -> dict[str, Any]:
        query = f"select status from experiments_experiment where id = {experiment}"

        def is_final() -> bool:
            return rows(self.control, query)[0][0] in FINAL

        wait_for(f"the end of experiment {experiment}", is_final)
        found = describe(self.control, experiment, *SFT)
        assert found["status"] == "finished", found
        return found
