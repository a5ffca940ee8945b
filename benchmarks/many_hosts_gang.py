"""The gpu hosts of the benchmark of many hosts: First desk over two, their losses, and their numbers."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.many_hosts_parts import Server
from testing import watch_installation
from testing.experiment_runs import launch, settings
from testing.joined_site import JoinedSite
from testing.linked_network import Network
from testing.paths import REPOSITORY
from testing.training.recorded_samples import record_samples
from testing.training.resume_probe import program
from testing.training.toy_desktops import ToyDesktops
from testing.two_gpu_hosts import BOTH, TwoGpuHosts
from training.content.recipes.tiny.make_checkpoint import make_tiny
from training.contracts.config import parse_config, to_yaml
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine
from webapp.lib.supervisor.ports import free_port

LIMIT_S = 1500.0
TOLERANCE = 1e-5
NUM_STEPS = 6
wait_for = partial(watch_installation.wait_for, patience_s=LIMIT_S, poll_s=1.0)
FIRST_DESK = {
    "algorithm.num_steps": 3,
    "algorithm.groups_per_step": 2,
    "algorithm.group_size": 4,
    "optimiser.num_processes": 2,
    "optimiser.num_hosts": 2,
    "evaluation.num_tasks": 2,
    "checkpoints.every": 1,
}


def first_desk(site: JoinedSite, server: Server) -> dict[str, Any]:
    """The preset with few small steps, on all four hosts, to its end; who listens meanwhile."""
    started, pool = time.monotonic(), site.pool
    chosen = FIRST_DESK | {"checkpoints.directory": str(pool.folder / "shared")}
    number = launch(pool.control, "--preset", "first-desk", *settings(chosen), "--anyway")
    wait_for("a step", lambda: pool.steps(number))
    listeners = {host.name: host.network.listeners() for host in (*site.env_hosts, *site.gpu_hosts)}
    found = pool.end_of(number)
    # What gpu hosts listen on is on the addresses that they were given: ranks, store and policy server.
    counts = {name: len(ports) for name, ports in listeners.items()}
    given = {host.name: host.network.far for host in site.gpu_hosts}
    are_given = all(
        name in given and port.rpartition(":")[0] == given[name]
        for name, ports in listeners.items()
        for port in ports
    )
    sums = server.sampled_for(number)
    steps = [step for step, _ in pool.steps(number)]
    whole = steps == [1, 2, 3] and pool.attempts(number) == [("finished", BOTH)]
    return {
        "steps": steps,
        "wall_s": round(time.monotonic() - started, 1),
        "evaluations": [[one["name"], one["success"]] for one in found["evaluations"]],
        "listeners": counts,
        "passed": whole and are_given and not sums["twice"] and not sums["refused"],
    } | sums


def lose_each(site: JoinedSite, server: Server) -> dict[str, Any]:
    """An experiment over both whose second host is killed and started again, then the first."""
    started, pool = time.monotonic(), site.pool
    number = pool.launch(2, steps=NUM_STEPS)
    for lost, (host, least) in enumerate(zip(reversed(site.gpu_hosts), (1, 3), strict=True)):
        wait_for(f"{least} steps", partial(_has_steps, pool, number, least))
        host.restart()
        wait_for("the attempt's end", partial(_has_lost, pool, number, lost + 1))
    found = pool.end_of(number)
    sums = server.sampled_for(number)
    steps = [step for step, _ in pool.steps(number)]
    # A host that starts slowly may come too late once more: such an attempt has begun nothing.
    *before, last = [one for one in pool.attempts(number) if one[0] != "incomplete"]
    whole = steps == list(range(1, NUM_STEPS + 1)) and last == ("finished", BOTH)
    return {
        "steps": steps,
        "attempts": [[one["status"], one["resumed_step"], one["reason"]] for one in found["attempts"]],
        "wall_s": round(time.monotonic() - started, 1),
        "passed": whole and len(before) == 2 and not sums["twice"] and not sums["refused"],
    } | sums


def _has_steps(pool: TwoGpuHosts, number: int, least: int) -> bool:
    return len(pool.steps(number)) >= least


def _has_lost(pool: TwoGpuHosts, number: int, least: int) -> bool:
    query = f"select count(*) from experiments_attempt where experiment_id = {number}"
    broken = watch_installation.rows(pool.control, f"{query} and status in ('crashed', 'lost')")
    return broken[0][0] >= least


def same_numbers(links: list[Network], folder: Path) -> dict[str, Any]:
    """Loss and gradient norm of five GRPO steps over recorded samples: two hosts, and one with two ranks."""
    record(folder)
    alone = walk(folder, [["--ranks", "2"]], lambda command, _: command)
    ranks, addresses = [], [f"{link.far}:{free_port()}" for link in links]
    for host in range(len(links)):
        file = folder / f"gang-{host}.json"
        file.write_text(json.dumps({"host": host, "addresses": addresses, "interface": "far"}))
        ranks.append(["--ranks", "1", "--gang", str(file)])
    spread = walk(folder, ranks, lambda command, host: links[host].inside(*command))
    worst = [
        max(
            abs(one[place] - other[place]) / abs(other[place])
            for one, other in zip(spread, alone, strict=True)
        )
        for place in range(2)
    ]
    names = ("loss", "gradient norm")
    return {
        "steps": len(alone),
        "one_host": alone,
        "two_hosts": spread,
        "largest_relative_difference": dict(zip(names, worst, strict=True)),
        "passed": len(alone) == 5 and max(worst) <= TOLERANCE,
    }


def record(folder: Path) -> None:
    """What `testing.training.resume_probe` reads."""
    model = make_tiny(folder / "model", seed=0)
    values = {
        "model": {"path": str(model), "max_pixels": 12288},
        "sampling": {"max_completion_tokens": 6},
        "algorithm": {"group_size": 4, "groups_per_step": 2, "num_steps": 5},
        "optimiser": {"learning_rate": 1e-3, "microbatch_size": 2},
    }
    config = parse_config(values)
    (folder / "plain.yaml").write_text(to_yaml(config))
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    samples = record_samples(ToyDesktops(engine=engine, renderer=renderer, frames=folder / "frames"))
    (folder / "samples.pickle").write_bytes(pickle.dumps(samples))


def walk(folder: Path, ranks: list[list[str]], place: Callable[[list[str], int], list[str]]) -> list[Any]:
    """(loss, gradient norm) of each step, of launchers with these options."""
    steps = folder / "steps.json"
    steps.unlink(missing_ok=True)
    base = [sys.executable, "-m", "training.distributed.launch"]
    walkers = [
        subprocess.Popen(
            place([*base, *options, *program(folder, "straight", folder, steps)], host),
            cwd=REPOSITORY,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for host, options in enumerate(ranks)
    ]
    try:
        codes = [walker.wait(LIMIT_S) for walker in walkers]
    finally:
        for walker in walkers:
            walker.kill()
    assert not any(codes), f"the launchers ended with {codes}"
    return json.loads(steps.read_text())
