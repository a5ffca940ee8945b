"""One case of `train_throughput`: a trainer, a model size and a layout, timed on this process' GPU.

    python -m training.distributed.launch --ranks N -m benchmarks.gpu.train_case OUTPUT CASE.json TURN

CASE.json is a `Case`. The GPU is first touched when the file TURN exists: imports and screens
can be made while another case runs. Rank 0 writes OUTPUT: times, tokens per second, MFU, memory and, for
`ours`, the split of a step. Every case is timed in two ways:

    ready   all tensors lie on the GPU before the clock starts
    whole   from PNG files to new weights: ours decodes within the step, beside the GPU's work; to the peers'
            steps the time is added in which their tensors were made, which they do one after the other

With `profile` the log gets the kernels that took longest and how long the GPU was busy.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.flops import utilisation
from benchmarks.gpu.models import make_config, make_model, random_weights, write_text_files
from benchmarks.gpu.sizes import SIZES
from benchmarks.gpu.workload import SCREEN, Workload, make_workload
from training.batch.micro_batch import MicroBatch
from training.contracts.config import ExperimentConfig, parse_config
from training.distributed.world import World, start_world, stop_world
from training.model.load_by_block import empty_model
from training.model.load_sharded import shard_model
from training.render.renderer import Renderer
from training.update.learner import Learner
from training.update.microbatch_maker import TokenIds

PRODUCTS = "nvjet|gemm|cutlass"
ATTENTION = "sdpa|flash"
"""In names of kernels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What to time."""

    name: str
    trainer: str = "ours"
    """ours, naive or trl."""
    size: str = "4b"
    layers: int = 0
    """Ours only: text blocks (0 = all of the size), to compile ahead or to find a fault."""
    trajectories: int = 8
    """Per GPU and step."""
    steps: int = 3
    """Timed ones of each way, after one that compiles and fills caches; the median counts."""
    is_ready: bool = True
    """Ours: time the way `ready`, too. (Peers' steps always are.)"""
    screen: tuple[int, int] = SCREEN
    parallel: dict[str, Any] = field(default_factory=dict)
    """`parallel` section of the config."""
    optimiser: dict[str, Any] = field(default_factory=dict)
    """`optimiser` section of the config."""
    lora: dict[str, Any] = field(default_factory=dict)
    """`lora` section of the config; ours only."""
    trl: dict[str, Any] = field(default_factory=dict)
    """What differs from TRL's defaults."""
    tries: tuple[dict[str, Any], ...] = ()
    """Ours only: other keys of `optimiser` to time afterwards, whole, two steps each."""
    profile: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a case has before it needs its GPU."""

    config: ExperimentConfig
    renderer: Renderer
    workload: Workload


def prepare(case: Case, num_gpus: int, folder: Path) -> Prepared:
    """Settings, tokenizer and trajectories; on the CPU."""
    write_text_files(folder, case.size)
    dtype = "bfloat16" if torch.cuda.is_available() else "float32"
    values = {
        "model": {"path": str(folder), "max_pixels": 1_003_520, "dtype": dtype},
        "sampling": {"max_completion_tokens": 128},
        "optimiser": {"packing": True, "learning_rate": 1e-6} | case.optimiser,
        "parallel": case.parallel,
        "lora": case.lora,
    }
    config = parse_config(values)
    renderer = Renderer.from_folder(folder, config.model, config.prompt)
    count, screen = case.trajectories * num_gpus, (case.screen[0], case.screen[1])
    return Prepared(config, renderer, make_workload(folder / "frames", renderer, count=count, screen=screen))


def run(case: Case, world: World, ready: Prepared, save: Save) -> None:
    """Time one case."""
    if case.trainer == "ours":
        measure_ours(case, world, ready, save)
        return
    makers = {"naive": naive_step, "trl": trl_step}
    step, inputs_s = makers[case.trainer](case, world, ready)
    save(measure_peer(case, world, ready.workload, step, inputs_s))


Step = Callable[[], dict[str, float]]
"""One optimiser step over all trajectories; returns its loss and, for ours, the split of its seconds."""
Save = Callable[[dict[str, Any]], None]
"""Keeps the figures that are known so far, should what follows fail."""


class Ours:
    """The product's own trainer, in both ways."""

    def __init__(self, case: Case, world: World, ready: Prepared) -> None:
        renderer, self.workload, self.world, self.config = ready.renderer, ready.workload, world, ready.config
        policy = shard_model(
            empty_model(make_config(case.size, layers=case.layers)),
            ready.config,
            world,
            banned_ids=renderer.banned_ids,
            read=random_weights(world.device),
        )
        ids = TokenIds(pad=renderer.pad_id, image_pad=renderer.image_pad_id, merge_size=renderer.merge)
        self.trainer = Learner(policy, world, ready.config, ids, self.workload.pixels)

    def use(self, optimiser: dict[str, Any]) -> None:
        """Go on with these keys of the config's section."""
        section = self.config.optimiser.model_copy(update=optimiser)
        self.trainer.config = self.config.model_copy(update={"optimiser": section})
        self.trainer.microbatches.config = section

    def whole(self) -> dict[str, float]:
        """Every screenshot is read and decoded within the step."""
        self.workload.pixels.clear()
        return self._step()

    def ready(self) -> Step:
        """A step whose microbatches lie on the device, screenshots as the bytes that they travel as."""
        maker, device = self.trainer.microbatches, self.world.device
        mine = maker.mine(self.workload.samples)
        kept: list[MicroBatch] = [maker.collate(rows).to(device) for rows in mine]

        def step() -> dict[str, float]:
            maker.on_device = lambda shares: map(maker.moved, kept)  # type: ignore[method-assign]
            try:
                return self._step()
            finally:
                del maker.on_device  # the class' own again

        return step

    def _step(self) -> dict[str, float]:
        started = _now(self.world)
        gradient = self.trainer.policy_gradient(self.workload.samples)
        summed = _now(self.world)
        self.trainer.update(gradient)
        ended = _now(self.world)
        return {
            "gradient_s": summed - started, "update_s": ended - summed, "loss": gradient.sums["loss"],
        }  # fmt: skip


def naive_step(case: Case, world: World, ready: Prepared) -> tuple[Step, float]:
    """transformers in bf16, SDPA, gradient checkpointing, all logits, AdamW: the loop one writes first.

    And the seconds in which its tensors were made.
    """
    from benchmarks.gpu.train_peers import inputs_of

    renderer, workload = ready.renderer, ready.workload
    model = make_model(case.size, world.device, dtype=torch.bfloat16).train()
    model.config._attn_implementation = "sdpa"
    model.gradient_checkpointing_enable({"use_reentrant": False})
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)
    started = _now(world)
    tensors = [
        inputs_of(one, workload.pixels, renderer.image_pad_id, world.device) for one in workload.samples
    ]
    inputs_s = _now(world) - started

    def step() -> dict[str, float]:
        total = 0.0
        for sample, inputs in zip(workload.samples, tensors, strict=True):
            logits = model(**inputs.model, use_cache=False).logits[0, :-1].float()
            logprobs = torch.log_softmax(logits, dim=-1)
            logprobs = logprobs.gather(-1, inputs.model["input_ids"][0, 1:, None])[:, 0]
            ratio = (logprobs - inputs.behaviour[1:]).exp()
            loss = -(ratio * sample.advantage * inputs.mask[1:]).sum() / inputs.mask.sum()
            (loss / len(workload.samples)).backward()
            total += loss.item() / len(workload.samples)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return {"loss": total}

    return step, inputs_s


def trl_step(case: Case, world: World, ready: Prepared) -> tuple[Step, float]:
    """TRL's GRPOTrainer with its own defaults: fp32 weights, bf16 autocast, gradient checkpointing.

    And the seconds in which its tensors were made.
    """
    from benchmarks.gpu.train_peers import trl_inputs, trl_trainer

    renderer, workload = ready.renderer, ready.workload
    model = make_model(case.size, world.device)
    trainer = trl_trainer(model, renderer.tokenizer, max(2, len(workload.samples)), case.trl)
    optimiser = trainer.create_optimizer()
    started = _now(world)
    tensors = [
        trl_inputs(one, workload.pixels, renderer.image_pad_id, world.device) for one in workload.samples
    ]
    inputs_s = _now(world) - started

    def step() -> dict[str, float]:
        total = 0.0
        for inputs in tensors:
            with trainer.compute_loss_context_manager():
                loss = trainer.compute_loss(trainer.model, inputs)
            trainer.accelerator.backward(loss / len(workload.samples))
            total += loss.item() / len(workload.samples)
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return {"loss": total}

    return step, inputs_s


def measure_ours(case: Case, world: World, ready: Prepared, save: Save) -> None:
    """Warm up, time both ways, try other settings, profile."""
    ours = Ours(case, world, ready)
    figures = _warm_up(case, world, ours.whole)
    figures["whole"] = _way(case, world, ready.workload, _timed(case.steps, world, ours.whole))
    figures |= _memory(world)
    _say(world, f"{case.name}, whole: {json.dumps(figures)}")
    save(figures)
    if case.is_ready:
        step = ours.ready()
        figures["ready"] = _way(case, world, ready.workload, _timed(case.steps, world, step))
        _say(world, f"{case.name}, ready: {json.dumps(figures['ready'])}")
        save(figures)
        del step
    figures["tries"] = [_tried(case, world, ours, optimiser) for optimiser in case.tries]
    save(figures)
    if case.profile:
        ours.use({})
        profile(world, ours.whole)


def _tried(case: Case, world: World, ours: Ours, optimiser: dict[str, Any]) -> dict[str, Any]:
    """Figures of other settings; too little memory is a finding."""
    ours.use(optimiser)
    row: dict[str, Any] = {"optimiser": optimiser}
    try:
        row |= _warm_up(case, world, ours.whole)
        row["whole"] = _way(case, world, ours.workload, _timed(min(2, case.steps), world, ours.whole))
    except torch.OutOfMemoryError as error:
        row["error"] = str(error)[:200]
    _say(world, f"{case.name}, tried: {json.dumps(row | _memory(world))}")
    return row | _memory(world)


def measure_peer(case: Case, world: World, workload: Workload, step: Step, inputs_s: float) -> dict[str, Any]:
    """The tensors are ready; making them is added for the whole."""
    figures = _warm_up(case, world, step)
    steps = _timed(case.steps, world, step)
    figures["ready"] = _way(case, world, workload, steps)
    figures["whole"] = _way(
        case, world, workload, [one | {"step_s": one["step_s"] + inputs_s} for one in steps]
    )
    figures |= {"inputs_s": inputs_s} | _memory(world)
    _say(world, f"{case.name}: {json.dumps(figures)}")
    return figures


def _warm_up(case: Case, world: World, step: Step) -> dict[str, Any]:
    started = _now(world)
    loss = step()["loss"]
    seconds = _now(world) - started
    _say(world, f"{case.name}: first step {seconds:.1f} s, loss {loss:.4f}")
    if world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    return {"warm_up_s": seconds}


def _timed(count: int, world: World, step: Step) -> list[dict[str, float]]:
    """What each step returned, its seconds and how often the allocator ran dry in it."""
    rows = []
    for _ in range(count):
        retries, started = _retries(world), _now(world)
        row = step()
        rows.append(row | {"step_s": _now(world) - started, "retries": _retries(world) - retries})
    return rows


def _way(case: Case, world: World, workload: Workload, steps: list[dict[str, float]]) -> dict[str, Any]:
    """Figures of one way of timing, by the median step."""
    work = workload.work()
    seconds = statistics.median(one["step_s"] for one in steps)
    return {
        "step_s": seconds,
        "steps": steps,
        "tokens": sum(work.lengths),
        "tokens_per_s": sum(work.lengths) / seconds,
        **utilisation(SIZES[case.size], work, seconds, world.size, only_adapters=bool(case.lora)),
    }


def _retries(world: World) -> int:
    return torch.cuda.memory_stats()["num_alloc_retries"] if world.device.type == "cuda" else 0


def _memory(world: World) -> dict[str, Any]:
    """Of the timed steps so far."""
    stats = torch.cuda.memory_stats() if world.device.type == "cuda" else {}
    return {
        "peak_memory_gb": stats.get("allocated_bytes.all.peak", 0) / 1e9,
        "reserved_memory_gb": stats.get("reserved_bytes.all.peak", 0) / 1e9,
    }


def profile(world: World, step: Step) -> None:
    """Print the kernels of one step that took longest, and how long the GPU was idle."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    # Kernels and the driver's calls only: the host's operations take longer to read than to run.
    kinds = [ProfilerActivity.CUDA] if world.device.type == "cuda" else [ProfilerActivity.CPU]
    with record(activities=kinds) as found:
        started = _now(world)
        step()
        seconds = _now(world) - started
    if not world.is_main:
        return
    rows = [row for row in found.key_averages() if row.self_device_time_total > 0]
    kernels = [
        row
        for row in rows
        if row.device_type == torch.autograd.DeviceType.CUDA and not getattr(row, "is_user_annotation", False)
    ]
    busy = sum(row.self_device_time_total for row in kernels) / 1e6
    _say(world, f"profiled step {seconds:.3f} s, kernels {busy:.3f} s")
    products = sum(row.self_device_time_total for row in kernels if re.search(PRODUCTS, row.key)) / 1e6
    attention = sum(row.self_device_time_total for row in kernels if re.search(ATTENTION, row.key)) / 1e6
    _say(world, f"matrix products {products:.3f} s, attention {attention:.3f} s")
    for row in sorted(kernels, key=lambda row: -row.self_device_time_total)[:60]:
        _say(world, f"  {row.self_device_time_total / 1e3:9.2f} ms {row.count:6d}x  {row.key[:110]}")
    waits = [
        row
        for row in found.key_averages()
        if re.search("Synchronize|Memcpy|cudaMalloc|cudaHost|cuMem", row.key)
    ]
    for row in waits:
        _say(world, f"  wait {row.key[:60]}: {row.count}x, host {row.self_cpu_time_total / 1e3:.1f} ms")


def _now(world: World) -> float:
    if world.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _say(world: World, text: str) -> None:
    if world.is_main:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def main() -> int:
    output, file, turn = (Path(argument) for argument in sys.argv[1:4])
    case = Case(**json.loads(file.read_text()))
    with tempfile.TemporaryDirectory(prefix="train-case-") as folder:
        ready = prepare(case, int(os.environ.get("WORLD_SIZE", "1")), Path(folder))
        while not turn.exists():
            time.sleep(0.2)
        world = start_world()

        def save(figures: dict[str, Any]) -> None:
            if world.is_main:
                part = output.with_suffix(".part")
                part.write_text(json.dumps({"case": asdict(case)} | figures))
                part.rename(output)

        run(case, world, ready, save)
    stop_world()
    return 0


if __name__ == "__main__":
    sys.exit(main())
