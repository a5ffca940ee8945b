"""The trainer's side of `weight_sync`: python -m benchmarks.gpu.weight_sync_case CASE.json

CASE.json: {size, model (folder), url_file (gets the policy server's address when it is ready), configs and
repeats {channel: ...}, load, output}. What was measured so far is written to `output` after every sync.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.gpu.models import make_model
from benchmarks.gpu.policy_process import TOKEN
from training.canary import canary_png
from training.config import ExperimentConfig, parse_config
from training.coordinator import Canary, Coordinator, CoordinatorAddress
from training.frames import FramePixels
from training.layout import lay_out
from training.parallel import World, start_world, stop_world
from training.policy import prepared
from training.policy_client import PolicyClient
from training.rendering import Renderer
from training.trainer import TokenIds, Trainer
from training.weight_sync import WeightSync, build_weight_sync
from training.weights.requests import WeightsRequest
from training.weights.tensors import num_bytes, plain_weights

STEP = 0.3
"""Relative size of the noise that moves every weight between two syncs."""
TURNS = 4
"""Of one trajectory of the load."""
PAUSE_S = 0.7
"""Between two syncs: trajectories are drawn meanwhile."""


class Door(Coordinator):
    """Straight to the policy server: the gpu worker in between only passes bodies through."""

    def __init__(self, url: str) -> None:
        super().__init__(CoordinatorAddress(url=url, token=TOKEN), patience_s=5.0)
        self.calls: list[tuple[str, float]] = []
        """(step, seconds) of the sync that is going on."""
        self.canary_s = 0.0

    def sync_weights(self, request: WeightsRequest) -> Canary | None:
        """As the coordinator's; times itself."""
        started = time.monotonic()
        super().sync_weights(request)
        done = time.monotonic()
        self.calls.append((request.stage, round(done - started, 4)))
        if request.stage not in ("load", "commit"):
            return None
        try:
            return self.canary()
        finally:
            self.canary_s = time.monotonic() - done

    def canary(self) -> Canary:
        return Canary.model_validate(self._post("/canary", {}))

    def version(self) -> int:
        return int(self._get("/health")["policy_version"])


def main() -> int:
    case = json.loads(Path(sys.argv[1]).read_text())
    world = start_world()
    model = prepared(make_model(case["size"], world.device, seed=1), world.device)
    print(f"   trainer {case['size']} waits for its server", flush=True)
    while not Path(case["url_file"]).exists():
        time.sleep(0.1)
    case["url"] = Path(case["url_file"]).read_text()
    found: dict[str, Any] = {}
    trainer: Trainer | None = None
    for channel, values in case["configs"].items():
        config = parse_config(values | {"model": values["model"] | {"path": case["model"]}})
        renderer = Renderer.from_folder(case["model"], config.model, config.prompt)
        trainer = trainer or make_trainer(case, model, config, renderer, world)
        trainer.config = config
        found[channel] = {"syncs": []}
        save = partial(_save, Path(case["output"]), found)
        measure(case, channel, trainer, renderer, found[channel], save)
        found[channel]["is_complete"] = True
        save()
    stop_world()
    return 0


def _save(path: Path, found: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(found))
    temporary.replace(path)


def make_trainer(
    case: dict[str, Any], model: nn.Module, config: ExperimentConfig, renderer: Renderer, world: World
) -> Trainer:
    policy = lay_out(model, config, world, banned_ids=renderer.banned_ids)
    ids = TokenIds(pad=renderer.pad_id, image_pad=renderer.image_pad_id, merge_size=renderer.merge)
    return Trainer(policy, world, config, ids, FramePixels(renderer, directory=Path(case["output"]).parent))


def measure(
    case: dict[str, Any],
    channel: str,
    trainer: Trainer,
    renderer: Renderer,
    result: dict[str, Any],
    save: Callable[[], None],
) -> None:
    """All syncs of one channel; `result` grows."""
    door = Door(case["url"])
    sync = build_weight_sync(
        trainer,
        trainer.config,
        door,
        pixels=trainer.pixels,
        renderer=renderer,
        source=Path(case["model"]),
        directory=Path(case["output"]).parent / "weights",
    )
    result["bytes"] = num_bytes(plain_weights(trainer.policy.model), sync.sender.dtype)
    result["versions"] = {"torch": torch.__version__, "gpu": gpu_name()}
    try:
        with drawing(case["url"], case["load"]) as drawn:
            for _ in range(1 + case["repeats"][channel]):
                result["syncs"].append(one_sync(trainer, sync, door))
                time.sleep(PAUSE_S)
                result |= {"in_flight": drawn.most, "spanned": drawn.spanned, "completions": drawn.count}
                save()
    finally:
        sync.close()


def one_sync(trainer: Trainer, sync: WeightSync, door: Door) -> dict[str, Any]:
    """Move the weights and push them."""
    version = door.version() + 1
    canary = door.canary()
    move(trainer.policy, version)
    before = sync.drift(canary)
    synchronise()
    door.calls = []
    report = sync.push(version)
    one = {
        "seconds": round(report.seconds - door.canary_s, 4),
        "canary_s": round(door.canary_s, 4),
        "drift": report.drift,
        "drift_before": before,
        "fell_back": report.fell_back,
        "calls": door.calls,
    }
    print(f"   {one}", flush=True)
    return one


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@torch.no_grad()
def move(policy: nn.Module, seed: int) -> None:
    """Another version: every weight by a share of its spread, which stays as it is.

    (A spread that grows from version to version would make logits, and so their rounding, ever larger.)
    """
    generator = torch.Generator(next(policy.parameters()).device).manual_seed(seed)
    for parameter in policy.parameters():
        local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
        spread = float(local.std()) if local.numel() > 1 else 0.0
        if spread > 0:
            noise = torch.empty_like(local).normal_(generator=generator)
            local.add_(noise, alpha=STEP * spread).div_((1 + STEP**2) ** 0.5)


class Drawn:
    """What the threads that draw have seen."""

    def __init__(self) -> None:
        self.count = 0
        self.spanned = 0
        """Completions with tokens of two versions."""
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.errors: list[str] = []


@contextlib.contextmanager
def drawing(url: str, count: int) -> Iterator[Drawn]:
    """`count` trajectories draw turn after turn until the block ends."""
    drawn, stop, png, unique = Drawn(), threading.Event(), canary_png(), time.monotonic_ns()

    def draw(number: int) -> None:
        client = PolicyClient(url, TOKEN, timeout_s=120.0)
        turn = 0
        while not stop.is_set():
            name = f"load-{unique}-{number}-{turn // TURNS}"
            with drawn.lock:
                drawn.now += 1
                drawn.most = max(drawn.most, drawn.now)
            try:
                completion = client.complete(
                    name,
                    turn_index=turn % TURNS,
                    text="Click the red button.",
                    screenshot=png,
                    temperature=1.0,
                    max_tokens=64,
                )
            except Exception as error:  # noqa: BLE001 - a thread's edge; the case shows it
                drawn.errors.append(str(error))
                return
            finally:
                with drawn.lock:
                    drawn.now -= 1
            turn += 1
            with drawn.lock:
                drawn.count += 1
                drawn.spanned += len(set(completion.policy_versions)) > 1

    threads = [threading.Thread(target=draw, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield drawn
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
        if drawn.errors:
            print(f"   {len(drawn.errors)} threads could not draw: {drawn.errors[0]}", flush=True)


def gpu_name() -> str:
    if not torch.cuda.is_available():
        return "none"
    return f"{torch.cuda.device_count()}x {torch.cuda.get_device_name(0)}"


if __name__ == "__main__":
    sys.exit(main())
