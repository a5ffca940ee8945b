"""Claims about NVIDIA GPUs, with the tables of training and of a whole step."""

from __future__ import annotations

from benchmarks.results_page.claim import Claim, Figures, each, number, percent, read, table

GPU = (
    Claim(
        result="gpu/train_throughput",
        says="The trainer uses the GPU, and is faster than others",
        figure=lambda found: each(_verdict(name, one) for name, one in found["verdict"].items()),
        n=lambda found: "median of three steps each",
        missed=(
            "1.6 to 1.9 times as fast as TRL at its fastest; the bar is 2.",
            "1.7 to 1.8 times as fast as a plain loop (bar: 2.5); kernels allow 2.1 to 2.4.",
            "Adapters of a 32B model on four GPUs had made no step when their time was up.",
            "Qwen2.5-VL-7B, adapters: 33 % MFU on one H200 (26 without compiled blocks); the bar is 40.",
            "Qwen3.5-0.8B: 13 % MFU on one H200, not compiled; its first step takes 98 s, for kernels.",
        ),
    ),
    Claim(
        result="gpu/rl_step",
        says="Trainer and engine are both busy during a whole step",
        figure=lambda found: "see the table",
        n=lambda found: "3 or 4 steps an arm",
        missed=(
            "With four GPUs the trainer is busy 79 to 83 %, the engine 64 to 72 %; the bar is 85.",
            "Qwen3-4B 16 % MFU, Qwen2.5-VL-7B with adapters 15 %, Qwen3.5-0.8B 9 % (8 without compiled "
            "blocks), in steps of 8 trajectories; the bar is 40.",
        ),
    ),
    Claim(
        result="gpu/rollout_throughput",
        says="The policy server costs little over SGLang alone, and hits its prefix cache",
        figure=lambda found: each(
            f"{number(case['turns_per_s'])} turns/s at {case['concurrent']}" for case in found["cases"]
        ),
        n=lambda found: "one or two repeats",
    ),
    Claim(
        result="gpu/weight_sync",
        says="New weights reach the engine within two seconds, as the trainer has them",
        figure=lambda found: each(
            f"{case['size']} by {case['channel']} {number(min(sync['seconds'] for sync in case['syncs']))} s"
            for case in found["cases"]
        ),
        n=lambda found: f"{sum(len(case['syncs']) for case in found['cases'])} syncs; the fastest of each",
        missed=(
            "Three of twelve syncs at 8B differ by more than 0.02 nats; bfloat16 alone rounds by 0.022.",
            "By disk a sync takes about ten seconds.",
        ),
    ),
    Claim(
        result="gpu/engine_smoke",
        says="The engine's logprobs are the model's",
        figure=lambda found: f"{found['parity']['float32_t1.0']['mean']:.3f} nats apart at temperature 1",
        n=lambda found: f"{found['parity']['float32_t1.0']['tokens']} tokens a temperature",
        missed=("The canary of seventeen tokens was 0.03 nats apart; the bar is 0.02.",),
    ),
    Claim(
        result="gpu/export_in_sglang",
        says="Stock SGLang serves exports of the families but Qwen3-VL as transformers computes them",
        figure=lambda found: (
            each(f"{name} {row['text']['mean']:.4f}" for name, row in sorted(found["families"].items()))
            + " nats apart, text, float16"
        ),
        n=lambda found: "51 tokens a family, and two pictures where it sees; small random models",
        missed=(
            "Qwen3.5 with pictures: 0.015 to 0.027 nats apart, the bar is 0.003.",
            "SGLang 0.5.16 drops height and width of a picture's positions in Qwen3.5; its pull request "
            "34446 mends that.",
        ),
    ),
    Claim(
        result="gpu/resume",
        says="A killed trainer or engine changes no loss",
        figure=lambda found: f"{len(_killed(found))} runs with a kill, each within {found['tolerance']}",
        n=lambda found: "one run each",
        missed=("A trainer killed inside a broadcast costs a restart of the server and a sync by disk.",),
    ),
    Claim(
        result="gpu/tests",
        says="The tests of the marker gpu pass",
        figure=lambda found: f"{sum(one == 'PASSED' for one in found['outcomes'].values())} passed",
        n=lambda found: f"{len(found['outcomes'])} tests, two GPUs",
    ),
)


def _verdict(name: str, one: Figures) -> str:
    is_share = "mfu" in name or "scaling" in name
    shown = percent(one["value"]) if is_share else f"{one['value']:.2f}"
    return f"{name} {shown} (bar: {percent(one['bar']) if is_share else one['bar']})"


def _killed(found: Figures) -> list[Figures]:
    return [run for run in (*found["runs"], *found["runs_before"]["runs"]) if run["killed"]]


def training() -> str:
    """Tokens a second of every case that ran."""
    rows = [
        [
            name.replace(" x", ", GPUs: "),
            *(number(case[way]["tokens_per_s"]) if way in case else "" for way in ("ready", "whole")),
            percent(case["whole"]["mfu"]) if "whole" in case else "",
            f"{case['peak_memory_gb']:.0f} GB",
        ]
        for name, case in read("gpu/train_throughput")["figures"]["cases"].items()
        if "error" not in case
    ]
    return table(["case", "tokens/s, ready", "tokens/s, whole", "MFU", "peak memory"], rows)


def whole_steps() -> str:
    """Where the seconds of a step go."""
    keys = ("step_s", "train_s", "wait_s", "sync_s")
    rows = [
        [
            name,
            *(f"{arm[key]:.1f}" for key in keys),
            number(arm["trajectories_per_gpu_hour"]),
            percent(arm["trainer_busy"]),
            percent(arm["engine_busy"]),
        ]
        for name, arm in read("gpu/rl_step")["figures"]["arms"].items()
    ]
    head = [
        "arm",
        "s per step",
        "train",
        "wait",
        "sync",
        "trajectories per GPU-hour",
        "trainer busy",
        "engine busy",
    ]
    return table(head, rows)
