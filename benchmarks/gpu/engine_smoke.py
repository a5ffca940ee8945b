"""Does SGLang sample what the trainer computes? True Qwen3-VL-2B dimensions, random weights, one GPU.

    python -m benchmarks.gpu.engine_smoke [--size 2b] [--tiny]

Through the whole policy server: trajectories with screenshots at 1312x736 are drawn; transformers scores the
same tokens (teacher-forced, fp32 and bf16 weights in this process). Bars: mean |SGLang - transformers|
<= 0.02 nats in bf16, sampled at temperature 1 and greedy; at 0.7, which magnifies rounding, and on the few
tokens of the canary <= 1.5 times what bf16 does to transformers; bias and ban show in the logprobs; new
weights from disk arrive, also in the middle of a completion; a killed server comes back and its turn is drawn
anew; a colocated one gives its memory back and wakes up as it was; nothing stays behind.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3VLForConditionalGeneration

from benchmarks.gpu.models import make_model, write_text_files
from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.screens import screen_png
from training.canary import canary_png, canary_sequence
from training.config import ModelConfig, PromptConfig
from training.model_inputs import model_inputs, without_tokens
from training.policy_client import PolicyClient
from training.rendering import Rendered, Renderer
from training.sglang import calls
from training.sglang.client import Sglang
from training.types import Observation, Task, Trajectory, TrajectoryStatus, Turn

MAX_DRIFT = 0.02
"""Nats, mean over completion tokens, bf16, logprobs at temperature 1 (sampled at 1, and greedy)."""
MAX_ROUNDING = 1.5
"""Elsewhere (another temperature, few tokens): drift over what rounding to bf16 does to transformers."""
PIXELS = {"min_pixels": 65_536, "max_pixels": 1_048_576}
SCREEN = (1312, 736)


@dataclass(kw_only=True)
class Bench:
    """What the parts share."""

    folder: Path
    model: ModelConfig
    prompt: PromptConfig
    policy: PolicyProcess
    device: torch.device
    tiny: bool
    max_tokens: int
    pngs: dict[str, bytes] = field(default_factory=dict)

    def renderer(self) -> Renderer:
        return Renderer.from_folder(self.folder / "a", self.model, self.prompt)

    def load(self, name: str, dtype: torch.dtype) -> torch.nn.Module:
        """Transformers' own reading of a folder."""
        model = Qwen3VLForConditionalGeneration.from_pretrained(self.folder / name, dtype=dtype)
        return model.to(self.device).eval()

    def screen(self, seed: int) -> bytes:
        size = (512, 384) if self.tiny else SCREEN
        return screen_png(seed, size)


def make_weights(bench_folder: Path, name: str, size: str, seed: int, device: torch.device) -> None:
    """Random weights as published models start; another seed, another policy."""
    folder = bench_folder / name
    write_text_files(folder)
    make_model(size, device, dtype=torch.bfloat16, seed=seed).save_pretrained(folder)


def play(
    bench: Bench, client: PolicyClient, name: str, *, turns: int, temperature: float, seed: int
) -> tuple[Trajectory, float]:
    """A trajectory as the trainer gets it, and seconds per turn."""
    seen, started = [], time.monotonic()
    for index in range(turns):
        png = bench.screen(seed * 100 + index)
        text = "Open the settings and turn the sound off." if index == 0 else "The action was carried out."
        completion = client.complete(
            name, turn_index=index, text=text, screenshot=png, temperature=temperature,
            max_tokens=bench.max_tokens,
        )  # fmt: skip
        bench.pngs[f"{name}-{index}"] = png
        width, height = (512, 384) if bench.tiny else SCREEN
        observation = Observation(sha256=f"{name}-{index}", width=width, height=height, text=text)
        seen.append(Turn(index=index, observation=observation, completion=completion))
    trajectory = Trajectory(
        trajectory_id=1, group_id=1, task=Task(task_id="t", instruction="Sound off"), turns=tuple(seen),
        source="policy", status=TrajectoryStatus.TERMINATED,
    )  # fmt: skip
    return trajectory, (time.monotonic() - started) / turns


def score(
    bench: Bench, model: torch.nn.Module, rendered: Rendered, *, temperature: float, wrong: bool = False
) -> list[float]:
    """Teacher-forced logprobs by transformers, as the trainer has them: after ban and temperature.

    `wrong` shows other pictures, as a control.
    """
    reader = bench.renderer()

    def pixels(name: str) -> Any:
        if name == "canary":
            return reader.pixels(canary_png())
        return reader.pixels(bench.screen(999_999) if wrong else bench.pngs[name])

    inputs = model_inputs(
        [rendered], pixels, image_pad_id=reader.image_pad_id, pad_id=reader.pad_id, merge=reader.merge
    )
    places = torch.tensor(rendered.loss_mask).nonzero().squeeze(-1)
    moved = {name: value.to(bench.device) for name, value in inputs.items()}
    with torch.no_grad():
        # Only the rows in front of completion tokens: 151k logits of every token would fill gigabytes.
        logits = model(**moved, use_cache=False, logits_to_keep=(places - 1).to(bench.device)).logits[0]
    scaled = without_tokens(logits.float(), reader.banned_ids) / temperature
    tokens = inputs["input_ids"][0, places].to(bench.device)
    return scaled.log_softmax(-1).gather(-1, tokens[:, None]).squeeze(-1).tolist()


def masked(rendered: Rendered) -> list[float]:
    return [p for p, m in zip(rendered.behaviour_logprobs, rendered.loss_mask, strict=True) if m]


def apart(ours: list[float], theirs: list[float]) -> dict[str, float]:
    gaps = torch.tensor([abs(a - b) for a, b in zip(ours, theirs, strict=True)])
    return {"mean": gaps.mean().item(), "max": gaps.max().item(), "tokens": len(gaps)}


def parity(bench: Bench) -> dict[str, Any]:
    """Drift at three temperatures, against transformers in fp32 and bf16, and with the wrong pictures."""
    reader, client, found = bench.renderer(), bench.policy.client(), {}
    drawn = {}
    for number, temperature in enumerate((1.0, 0.7, 0.0)):
        trajectory, turn_s = play(
            bench, client, f"parity-{number}", turns=3, temperature=temperature, seed=number
        )
        rendered = reader.render_trajectory(trajectory)
        banned = [token for turn in trajectory.turns for token in turn.completion.token_ids]
        assert not set(banned) & set(reader.banned_ids), "a banned id was drawn"
        drawn[temperature] = rendered
        found[f"turn_s_{temperature}"] = turn_s
    exact: dict[float, list[float]] = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = bench.load("a", dtype)
        for temperature, rendered in drawn.items():
            scored = score(bench, model, rendered, temperature=temperature or 1.0)
            name = f"{str(dtype).removeprefix('torch.')}_t{temperature}"
            found[name] = apart(masked(rendered), scored)
            if dtype == torch.float32:
                exact[temperature] = scored
            else:
                # What rounding to bf16 alone makes of it, for comparison.
                found[f"transformers_bfloat16_float32_t{temperature}"] = apart(exact[temperature], scored)
                wrong = score(bench, model, rendered, temperature=temperature or 1.0, wrong=True)
                found[f"{name}_wrong_pictures"] = apart(masked(rendered), wrong)
        del model
        _free(bench)
    found["logprob_std"] = torch.tensor(masked(drawn[1.0])).std().item()
    found["passed"] = all(
        found[f"bfloat16_t{t}"]["mean"] <= allowed(t, found[f"transformers_bfloat16_float32_t{t}"]["mean"])
        for t in drawn
    )
    return found


def allowed(temperature: float, rounding: float) -> float:
    """The bar on the mean drift; `rounding`: transformers in bf16 against fp32 on the same tokens."""
    return MAX_DRIFT if temperature in (0.0, 1.0) else MAX_ROUNDING * rounding


def bias(bench: Bench) -> dict[str, Any]:
    """Straight to SGLang: a bias changes the draw and shows in the reported logprob, at temperature 0.5."""
    reader = bench.renderer()
    prompt = reader.render_turn(0, "Say a word.", None, instruction="Say a word.")
    url = bench.policy.ask("GET", "/engine")["servers"][0]["url"]
    with Sglang(url) as server:

        def draw(temperature: float, bias: dict[str, float]) -> calls.Generated:
            parameters = {"temperature": temperature, "max_new_tokens": 1, "logit_bias": bias}
            return server.run(calls.generate(prompt, parameters))

        first = draw(0.0, {})
        top, p_top = first.token_ids[0], first.logprobs[0]
        second = draw(0.0, {str(top): -1e9})
        pushed = draw(0.5, {str(top): 100.0})
        plain = server.run(
            calls.generate(
                prompt + [second.token_ids[0]], {"temperature": 1.0, "max_new_tokens": 1},
                logprob_start=len(prompt) - 1, chosen_ids=[top],
            )
        )  # fmt: skip
    unbanned = plain.input_logprobs[-1]
    expected = unbanned - torch.log1p(-torch.tensor(p_top).exp()).item()
    found = {
        "banned_differs": second.token_ids[0] != top,
        "after_ban": second.logprobs[0],
        "expected_after_ban": expected,
        "pushed_takes": pushed.token_ids[0] == top,
        "pushed_logprob": pushed.logprobs[0],
        "entries": [len(plain.input_logprobs), len(plain.input_chosen)],
        "top_seen_in_prompt_scores": plain.input_chosen[-1].get(top),
        "top_logprob": p_top,
    }
    found["passed"] = (
        found["banned_differs"]
        and abs(second.logprobs[0] - expected) < MAX_DRIFT
        # The stand-in knows bans only.
        and (bench.tiny or (found["pushed_takes"] and abs(pushed.logprobs[0]) < 1e-2))
    )
    return found


def canary(bench: Bench) -> dict[str, Any]:
    """Weights b from disk and back: the canary follows, and a completion goes on across the sync."""
    client, rendered = bench.policy.client(), canary_sequence(bench.renderer())
    wanted, rounding = {}, {}
    for name in ("a", "b"):
        scored = []
        for dtype in (torch.bfloat16, torch.float32):
            model = bench.load(name, dtype)
            scored.append(score(bench, model, rendered, temperature=1.0))
            del model
            _free(bench)
        wanted[name], rounding[name] = scored[0], apart(*scored)
    found: dict[str, Any] = {"rounding": rounding, "at_start": apart(canary_logprobs(client), wanted["a"])}
    version = bench.policy.ask("GET", "/engine")["policy_version"]
    for name in ("b", "a"):
        version += 1
        started = time.monotonic()
        client.load_weights(str(bench.folder / name), version)
        found[f"load_{name}_s"] = time.monotonic() - started
        found[f"after_{name}"] = apart(canary_logprobs(client), wanted[name])
    found["a_against_b"] = apart(wanted["a"], wanted["b"])
    found |= across_a_sync(bench, client, version + 1)
    # Seventeen tokens: their mean scatters by a third around that of many.
    limits = {name: max(MAX_DRIFT, MAX_ROUNDING * gap["mean"]) for name, gap in rounding.items()}
    found["passed"] = (
        all(
            found[part]["mean"] <= limits[name]
            for part, name in (("at_start", "a"), ("after_a", "a"), ("after_b", "b"))
        )
        and len(found["versions"]) > 1
    )
    return found


def canary_logprobs(client: PolicyClient) -> list[float]:
    answer = client.canary()
    return [p for p, m in zip(answer["logprobs"], answer["loss_mask"], strict=True) if m]


def across_a_sync(bench: Bench, client: PolicyClient, version: int) -> dict[str, Any]:
    """A long completion that a sync cuts."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            lambda: bench.policy.client().complete(
                "across", turn_index=0, text="Write a lot.", screenshot=bench.screen(7), temperature=1.0,
                max_tokens=60 if bench.tiny else 1500,
            )
        )  # fmt: skip
        time.sleep(1.5)
        client.load_weights(str(bench.folder / "a"), version)
        completion = asked.result()
    counts: dict[int, int] = {}
    for one in completion.policy_versions:
        counts[one] = counts.get(one, 0) + 1
    return {"versions": counts, "across_tokens": len(completion.token_ids)}


def killed(bench: Bench) -> dict[str, Any]:
    """kill -9 of the server in the middle of turns: they are drawn anew, once."""
    before = bench.policy.ask("GET", "/engine")
    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(
                lambda number: bench.policy.client().complete(
                    f"killed-{number}", turn_index=0, text="Write a lot.", screenshot=bench.screen(number),
                    temperature=1.0, max_tokens=60 if bench.tiny else 800,
                ),
                number,
            )
            for number in range(4)
        ]  # fmt: skip
        time.sleep(1.0)
        os.kill(before["servers"][0]["pid"], signal.SIGKILL)
        completions = [one.result() for one in asked]
    seconds = time.monotonic() - started
    again = bench.policy.client().complete(
        "killed-0",
        turn_index=0,
        text="Write a lot.",
        screenshot=bench.screen(0),
        temperature=1.0,
        max_tokens=8,
    )
    after = bench.policy.ask("GET", "/engine")
    found = {
        "seconds": seconds,
        "restarts": after["num_restarts"],
        "redrawn": after["usage"]["num_redrawn"],
        "tokens": [len(one.token_ids) for one in completions],
        "repeat_is_same": again == completions[0],
        "canary_mean_after": sum(canary_logprobs(bench.policy.client())),
    }
    found["passed"] = found["repeat_is_same"] and after["num_restarts"] == 1
    return found


def asleep(bench: Bench) -> dict[str, Any]:
    """Colocated: memory comes back during sleep, and the canary is the same afterwards."""
    client = bench.policy.client()
    before = canary_logprobs(client)
    found: dict[str, Any] = {"free_awake_gb": free_gb(bench)}
    started = time.monotonic()
    bench.policy.ask("POST", "/sleep")
    found |= {"sleep_s": time.monotonic() - started, "free_asleep_gb": free_gb(bench)}
    started = time.monotonic()
    bench.policy.ask("POST", "/wake")
    found |= {"wake_s": time.monotonic() - started, "free_awake_again_gb": free_gb(bench)}
    found["canary"] = apart(before, canary_logprobs(client))
    _, found["turn_s"] = play(bench, client, "awake", turns=2, temperature=1.0, seed=5)
    # Not zero: before, a part of its keys and values was cached, and bf16 rounds otherwise in other batches.
    found["passed"] = found["canary"]["mean"] <= MAX_DRIFT
    return found


def free_gb(bench: Bench) -> float:
    return torch.cuda.mem_get_info()[0] / 1e9 if bench.device.type == "cuda" else 0.0


def _free(bench: Bench) -> None:
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()


def run_parts(bench: Bench, parts: list[Callable[[Bench], dict[str, Any]]], report: dict[str, Any]) -> None:
    """Each on its own: one that fails does not stop the others."""
    for part in parts:
        started = time.monotonic()
        try:
            found = part(bench)
        except Exception as error:  # noqa: BLE001 - the next part says something, too
            traceback.print_exc()
            found = {"passed": False, "error": repr(error)[:500]}
            print(bench.policy.tail(3000), flush=True)
        report[part.__name__] = found | {"seconds": time.monotonic() - started}
        print(part.__name__, json.dumps(report[part.__name__]), flush=True)


def settings(options: argparse.Namespace, placement: str) -> dict[str, Any]:
    """The experiment config of the policy server."""
    extra = options.extra.split() if options.extra else []
    return {
        "model": {"dtype": "float32" if options.tiny else "bfloat16", **PIXELS},
        "prompt": {"style": "computer-use"},
        "sampling": {"max_context_tokens": 16_384, "max_completion_tokens": 4096},
        "engine": {
            "name": "sglang", "placement": placement, "memory_fraction": options.memory_fraction,
            "attention_backend": options.attention_backend, "extra_arguments": extra,
            "start_timeout_s": 400,
        },
    }  # fmt: skip


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--size", default="2b")
    arguments.add_argument("--tiny", action="store_true", help="try this program on a CPU with a stand-in")
    arguments.add_argument("--memory-fraction", type=float, default=0.4)
    arguments.add_argument("--attention-backend", default="triton")
    arguments.add_argument("--extra", default="", help="further arguments of SGLang")
    arguments.add_argument("--parts", default="parity,bias,canary,killed,asleep")
    arguments.add_argument("--result", type=Path)
    options = arguments.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() and not options.tiny else "cpu")
    names = options.parts.split(",")
    report: dict[str, Any] = {"torch": torch.__version__, "device": str(device), "size": options.size}
    report["left_behind"] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        started = time.monotonic()
        for seed, name in enumerate("ab"):
            make_weights(folder, name, "tiny" if options.tiny else options.size, seed, device)
        _empty(device)
        report["make_weights_s"] = time.monotonic() - started
        print("weights", round(report["make_weights_s"], 1), flush=True)
        own = [part for part in (parity, bias, canary, killed) if part.__name__ in names]
        _serve(folder, options, device, "own", own, report)
        if "asleep" in names:
            _serve(folder, options, device, "colocated", [asleep], report)
    passed = all(part["passed"] for part in report.values() if isinstance(part, dict) and "passed" in part)
    report["passed"] = passed and not report["left_behind"]
    if options.result:
        options.result.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report))
    return 0 if report["passed"] else 1


def _serve(
    folder: Path,
    options: argparse.Namespace,
    device: torch.device,
    placement: str,
    parts: list[Callable[[Bench], dict[str, Any]]],
    report: dict[str, Any],
) -> None:
    """One policy server and the parts that ask it; a start that fails is reported."""
    config = settings(options, placement)
    policy = PolicyProcess(model=folder / "a", config=config, folder=folder / placement, tiny=options.tiny)
    try:
        with policy:
            report[f"start_{placement}_s"] = policy.start_s
            print(f"{placement} is ready after {policy.start_s:.1f} s", flush=True)
            bench = Bench(
                folder=folder, model=ModelConfig(**config["model"]), prompt=PromptConfig(**config["prompt"]),
                policy=policy, device=device, tiny=options.tiny, max_tokens=12 if options.tiny else 48,
            )  # fmt: skip
            run_parts(bench, parts, report)
            report[f"said_{placement}"] = policy.said
    except RuntimeError as error:
        report[f"start_{placement}"] = {"passed": False, "error": str(error), "said": policy.said}
        print(error, policy.tail(12_000), sep="\n", flush=True)
    report["left_behind"] += policy.left_behind
    if options.result:
        options.result.write_text(json.dumps(report, indent=2) + "\n")


def _empty(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
