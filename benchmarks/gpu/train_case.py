"""One case of `train_throughput`: a trainer, a model size and a layout, timed on this process' GPU.

    torchrun --nproc-per-node N -m benchmarks.gpu.train_case OUTPUT CASE.json TURN

CASE.json is a `Case`. The GPU is first touched when the file TURN exists: imports and drawing can go on while
another case runs. Rank 0 writes OUTPUT: times, tokens per second, MFU, memory and, for `ours`, the split
of a step. With `profile` the log gets the kernels that took longest and how long the GPU was busy.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.flops import utilisation
from benchmarks.gpu.models import SIZES, make_model, write_text_files
from benchmarks.gpu.workload import SCREEN, Drawn, draw
from training.config import ExperimentConfig, parse_config
from training.layout import lay_out
from training.parallel import World, start_world, stop_world
from training.policy import prepared
from training.rendering import Renderer
from training.trainer import TokenIds, Trainer


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What to time."""

    name: str
    trainer: str = "ours"
    """ours, naive or trl."""
    size: str = "4b"
    trajectories: int = 8
    """Per GPU and step."""
    steps: int = 2
    """Timed ones, after one that compiles and fills caches."""
    screen: tuple[int, int] = SCREEN
    parallel: dict[str, Any] = field(default_factory=dict)
    """`parallel` section of the config."""
    optimiser: dict[str, Any] = field(default_factory=dict)
    """`optimiser` section of the config."""
    profile: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a case has before it needs its GPU."""

    config: ExperimentConfig
    renderer: Renderer
    drawn: Drawn


def prepare(case: Case, num_gpus: int, folder: Path) -> Prepared:
    """Settings, tokenizer and trajectories; on the CPU."""
    write_text_files(folder)
    dtype = "bfloat16" if torch.cuda.is_available() else "float32"
    values = {
        "model": {"path": str(folder), "max_pixels": 1_003_520, "dtype": dtype},
        "sampling": {"max_completion_tokens": 128},
        "optimiser": {"packing": True, "microbatch_tokens": 9_000, "learning_rate": 1e-6} | case.optimiser,
        "parallel": case.parallel,
    }
    config = parse_config(values)
    renderer = Renderer.from_folder(folder, config.model, config.prompt)
    count, screen = case.trajectories * num_gpus, (case.screen[0], case.screen[1])
    return Prepared(config, renderer, draw(folder / "frames", renderer, count=count, screen=screen))


def run(case: Case, world: World, ready: Prepared) -> dict[str, Any]:
    """Time one case; every rank gets the same figures."""
    makers = {"ours": our_step, "naive": naive_step, "trl": trl_step}
    step = makers[case.trainer](case, world, ready)
    return measure(case, world, ready.drawn, step)


Step = Callable[[], dict[str, float]]
"""One optimiser step over all trajectories; returns its loss and the split of its time in seconds. Ours reads
screens and makes tensors within the step; for the peers that is done before, and `inputs_s` do not count."""


def our_step(case: Case, world: World, ready: Prepared) -> Step:
    """The product's own trainer."""
    renderer, drawn = ready.renderer, ready.drawn
    model = prepared(make_model(case.size, world.device), world.device)
    policy = lay_out(model, ready.config, world, banned_ids=renderer.banned_ids)
    ids = TokenIds(pad=renderer.pad_id, image_pad=renderer.image_pad_id, merge_size=renderer.merge)
    trainer = Trainer(policy, world, ready.config, ids, drawn.pixels)

    def step() -> dict[str, float]:
        started = _now(world)
        gradient = trainer.policy_gradient(drawn.samples)
        summed = _now(world)
        trainer._finish(drawn.samples, gradient, 1.0)
        ended = _now(world)
        return {
            "gradient_s": summed - started, "update_s": ended - summed, "loss": gradient.sums["loss"],
        }  # fmt: skip

    return step


def naive_step(case: Case, world: World, ready: Prepared) -> Step:
    """transformers in bf16, SDPA, gradient checkpointing, all logits, AdamW: the loop one writes first."""
    from benchmarks.gpu.train_peers import inputs_of

    renderer, drawn = ready.renderer, ready.drawn
    model = make_model(case.size, world.device, dtype=torch.bfloat16).train()
    model.config._attn_implementation = "sdpa"
    model.gradient_checkpointing_enable({"use_reentrant": False})
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)
    started = _now(world)
    tensors = [inputs_of(one, drawn.pixels, renderer.image_pad_id, world.device) for one in drawn.samples]
    inputs_s = _now(world) - started

    def step() -> dict[str, float]:
        total = 0.0
        for sample, inputs in zip(drawn.samples, tensors, strict=True):
            logits = model(**inputs.model, use_cache=False).logits[0, :-1].float()
            logprobs = torch.log_softmax(logits, dim=-1)
            logprobs = logprobs.gather(-1, inputs.model["input_ids"][0, 1:, None])[:, 0]
            ratio = (logprobs - inputs.behaviour[1:]).exp()
            loss = -(ratio * sample.advantage * inputs.mask[1:]).sum() / inputs.mask.sum()
            (loss / len(drawn.samples)).backward()
            total += loss.item() / len(drawn.samples)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return {"loss": total, "inputs_s": inputs_s}

    return step


def trl_step(case: Case, world: World, ready: Prepared) -> Step:
    """TRL's GRPOTrainer with its own defaults: fp32 weights, bf16 autocast, gradient checkpointing."""
    from benchmarks.gpu.train_peers import trl_inputs, trl_trainer

    renderer, drawn = ready.renderer, ready.drawn
    model = make_model(case.size, world.device)
    trainer = trl_trainer(model, renderer.tokenizer, max(2, len(drawn.samples)))
    optimiser = trainer.create_optimizer()
    started = _now(world)
    tensors = [trl_inputs(one, drawn.pixels, renderer.image_pad_id, world.device) for one in drawn.samples]
    inputs_s = _now(world) - started

    def step() -> dict[str, float]:
        total = 0.0
        for inputs in tensors:
            with trainer.compute_loss_context_manager():
                loss = trainer.compute_loss(trainer.model, inputs)
            trainer.accelerator.backward(loss / len(drawn.samples))
            total += loss.item() / len(drawn.samples)
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return {"loss": total, "inputs_s": inputs_s}

    return step


def measure(case: Case, world: World, drawn: Drawn, step: Step) -> dict[str, Any]:
    """Warm up, time, profile."""
    started = _now(world)
    first = step()
    warm_up_s = _now(world) - started
    _say(world, f"{case.name}: first step {warm_up_s:.1f} s, loss {first['loss']:.4f}")
    if world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    splits, times = [], []
    for _ in range(case.steps):
        started = _now(world)
        splits.append(step())
        times.append(_now(world) - started)
    work = drawn.work()
    seconds = sorted(times)[len(times) // 2]
    is_gpu = world.device.type == "cuda"
    stats = torch.cuda.memory_stats() if is_gpu else {}
    figures = {
        "step_s": times,
        "split": splits,
        "tokens": sum(work.lengths),
        "tokens_per_s": sum(work.lengths) / seconds,
        "peak_memory_gb": stats.get("allocated_bytes.all.peak", 0) / 1e9,
        "reserved_memory_gb": stats.get("reserved_bytes.all.peak", 0) / 1e9,
        "allocation_retries": stats.get("num_alloc_retries", 0),
        "warm_up_s": warm_up_s,
        **utilisation(SIZES[case.size], work, seconds, world.size),
    }
    _say(world, f"{case.name}: {json.dumps(figures)}")
    if case.profile:
        profile(world, step)
    return figures


def profile(world: World, step: Step) -> None:
    """Print the kernels of one step that took longest, and how long the GPU was idle."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        started = _now(world)
        step()
        seconds = _now(world) - started
    if not world.is_main:
        return
    rows = [row for row in found.key_averages() if row.self_device_time_total > 0]
    kernels = [row for row in rows if row.device_type == torch.autograd.DeviceType.CUDA]
    busy = sum(row.self_device_time_total for row in kernels) / 1e6
    _say(world, f"profiled step {seconds:.3f} s, kernels {busy:.3f} s")
    for row in sorted(kernels, key=lambda row: -row.self_device_time_total)[:45]:
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
        figures = run(case, world, ready)
    if world.is_main:
        output.write_text(json.dumps({"case": asdict(case)} | figures))
    stop_world()
    return 0


if __name__ == "__main__":
    sys.exit(main())
