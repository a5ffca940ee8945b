"""The parts of `engine_smoke`: what each asks of a running policy server, and its bar."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from benchmarks.gpu.smoke_bench import Bench, apart, masked, play, score
from testing.training.sglang_client import Sglang
from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EyeTestAnswer
from training.loop.eye_test import judged
from training.loop.reference_reader import reference_reader
from training.sampler.canary import canary_sequence
from training.sampler.sglang import server_endpoints
from workers.env.policy_client import PolicyClient

MAX_DRIFT = 0.02
"""Nats, mean over completion tokens, bf16, logprobs at temperature 1 (sampled at 1, and greedy)."""
MAX_EYE_TEST_S = 30.0
MAX_ROUNDING = 1.5
"""Elsewhere (another temperature, few tokens): drift over what rounding to bf16 does to transformers."""


def parity(bench: Bench) -> dict[str, Any]:
    """Drift at three temperatures, against transformers in fp32 and bf16, and with the wrong pictures."""
    reader, client, found = bench.renderer(), bench.policy.client(), {}
    generated = {}
    for number, temperature in enumerate((1.0, 0.7, 0.0)):
        trajectory, turn_s = play(
            bench, client, f"parity-{number}", turns=3, temperature=temperature, seed=number
        )
        rendered = reader.render_trajectory(trajectory)
        banned = [token for turn in trajectory.turns for token in turn.completion.token_ids]
        assert not set(banned) & set(reader.banned_ids), "a banned id was generated"
        generated[temperature] = rendered
        found[f"turn_s_{temperature}"] = turn_s
    exact: dict[float, list[float]] = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = bench.load("a", dtype)
        for temperature, rendered in generated.items():
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
        bench.free()
    found["logprob_std"] = torch.tensor(masked(generated[1.0])).std().item()
    found["passed"] = all(
        found[f"bfloat16_t{t}"]["mean"] <= allowed(t, found[f"transformers_bfloat16_float32_t{t}"]["mean"])
        for t in generated
    )
    return found


def allowed(temperature: float, rounding: float) -> float:
    """The bar on the mean drift; `rounding`: transformers in bf16 against fp32 on the same tokens."""
    return MAX_DRIFT if temperature in (0.0, 1.0) else MAX_ROUNDING * rounding


def bias(bench: Bench) -> dict[str, Any]:
    """Straight to SGLang: a bias changes the tokens and shows in the logprob, at temperature 0.5."""
    reader = bench.renderer()
    prompt = reader.render_turn(0, "Say a word.", None, instruction="Say a word.")
    url = bench.policy.ask("GET", "/engine")["servers"][0]["url"]
    with Sglang(url) as server:

        def generate_first(temperature: float, bias: dict[str, float]) -> server_endpoints.Generated:
            parameters = {"temperature": temperature, "max_new_tokens": 1, "logit_bias": bias}
            return server.run(server_endpoints.generate(prompt, parameters))

        first = generate_first(0.0, {})
        top, p_top = first.token_ids[0], first.logprobs[0]
        second = generate_first(0.0, {str(top): -1e9})
        pushed = generate_first(0.5, {str(top): 100.0})
        plain = server.run(
            server_endpoints.generate(
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
            bench.free()
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


def eyes(bench: Bench) -> dict[str, Any]:
    """The eye test as an evaluation of a folder makes it, within half a minute."""
    started = time.monotonic()
    model = bench.model.model_copy(update={"path": str(bench.folder / "a")})
    config = ExperimentConfig(model=model, prompt=bench.prompt)
    gap, is_whole = reference_reader(config)
    loaded_s = time.monotonic() - started
    answer = EyeTestAnswer.model_validate(bench.policy.ask("POST", "/eyes", {"is_whole": is_whole}))
    found = judged(answer, gap, config, 0, started)
    print(found.text, flush=True)
    return {
        **found.model_dump(mode="json"),
        "loaded_s": loaded_s,
        "is_whole": is_whole,
        "passed": not found.problem and found.seconds - loaded_s <= MAX_EYE_TEST_S,
    }


def canary_logprobs(client: PolicyClient) -> list[float]:
    answer = client.canary()
    return [p for p, m in zip(answer.logprobs, answer.loss_mask, strict=True) if m]


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
    """kill -9 of the server in the middle of turns: they are generated anew, once."""
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
        "restarted": after["usage"]["num_restarted"],
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
