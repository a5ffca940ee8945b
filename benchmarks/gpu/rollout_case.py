"""One row of `rollout_throughput`: rounds of the same trajectories by each way, and what they say."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from benchmarks.gpu.policy_process import PolicyProcess
from benchmarks.gpu.rollout_load import Load, Plan, Talk, Told, Way
from benchmarks.report import percentile
from testing.training.sglang_client import Sglang
from training.sampler.sglang import server_endpoints

GROUP = 8
DIRECT_S = 4.0
"""A round of way direct begins no turn later: SGLang decodes every image of every request, and the first
turns, whose contexts are short, are its best ones."""
GUESSED_TURNS_PER_S = 20.0
"""Of a round that has not been measured yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """How many trajectories at once, and how long."""

    concurrent: int
    turns: int


@dataclass(kw_only=True)
class Row:
    """What was measured of a case so far."""

    case: Case
    rates: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    latencies: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    hits: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    """[cached, prompt, reusable] tokens."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of the last round, with everything around it."""
    usage: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """What the policy server counted."""
    lengths: dict[str, set[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(set))
    """(turn, prompt tokens, generated tokens) that occurred."""

    def expected_s(self, way: Way) -> float:
        """How long a round will take."""
        turns = self.case.concurrent * self.case.turns
        guessed = turns / GUESSED_TURNS_PER_S + 2
        return self.seconds.get(way, min(guessed, 3 * DIRECT_S) if way == "direct" else guessed)

    def take(self, way: Way, told: list[Told]) -> None:
        self.rates[way].append(rate(told))
        self.latencies[way] += [one.ended - one.started for one in told]
        self.lengths[way] |= {(one.turn, one.prompt_tokens, len(one.token_ids)) for one in told}

    def figures(self) -> dict[str, Any]:
        """For the table and the results."""
        rates = {way: median(values) for way, values in self.rates.items() if values}
        ours = rates["policy"]
        cached, prompt, reusable = self.hits["policy"]
        shared = [self.lengths[way] == self.lengths["policy"] for way in rates if way != "direct"]
        # A round of way direct that was cut has not seen all turns.
        shared += [self.lengths["direct"] <= self.lengths["policy"]] if "direct" in rates else []
        found: dict[str, Any] = {
            "concurrent": self.case.concurrent,
            "turns": self.case.turns,
            "turns_per_s": ours,
            "hit_rate": cached / reusable,
            "cached_share": cached / prompt,
            "cached_share_ceiling": reusable / prompt,
            "same_lengths": all(shared),
            "turn_p95_s": percentile(self.latencies["policy"], 0.95),
            "usage": dict(self.usage),
            "rates": {way: list(values) for way, values in self.rates.items()},
        }
        for way, value in rates.items():
            name = "turn" if way == "policy" else way
            found[f"{name}_p50_s"] = percentile(self.latencies[way], 0.5)
            if way != "policy":
                found[f"{way}_turns_per_s"] = value
                found["overhead" if way == "direct" else "overhead_ready"] = 1 - ours / value
        return found


def talks_of(case: Case, tag: str) -> list[Talk]:
    """Trajectories in groups that share the first screen; names differ between rounds, pictures do not."""
    talks = []
    for number in range(case.concurrent):
        pictures = [f"g{number // GROUP}"] + [f"t{number}-{turn}" for turn in range(1, case.turns)]
        talks.append(Talk(name=f"{tag}-{number}", number=number, pictures=tuple(pictures)))
    return talks


def play(row: Row, way: Way, load: Load, plan: Plan, policy: PolicyProcess, system_tokens: int) -> None:
    """One round with empty caches."""
    case, began = row.case, time.monotonic()
    flush(plan)
    before = policy.ask("GET", "/engine")["usage"]
    if way == "direct":
        plan = replace(plan, until=time.monotonic() + DIRECT_S)
    talks = talks_of(case, f"{way}-{case.concurrent}-{case.turns}-{len(row.rates[way])}-{began:.1f}")
    told = load.run(plan, talks, concurrent=case.concurrent, way=way)
    row.take(way, told)
    if way == "policy":
        after = policy.ask("GET", "/engine")["usage"]
        counted = {name: after[name] - before[name] for name in after}
        for name, value in counted.items():
            row.usage[name] += value
        found = (
            counted["cached_tokens"],
            counted["prompt_tokens"],
            reusable_tokens(told, case, system_tokens),
        )
    else:
        found = (
            sum(one.cached_tokens for one in told),
            sum(one.prompt_tokens for one in told),
            reusable_tokens(told, case, system_tokens),
        )
    row.hits[way] = [old + new for old, new in zip(row.hits[way], found, strict=True)]
    row.seconds[way] = time.monotonic() - began


def reusable_tokens(told: list[Told], case: Case, system_tokens: int) -> int:
    """Prompt tokens that some server had been sent before, at best."""
    by_turn: dict[int, list[Told]] = defaultdict(list)
    for one in told:
        by_turn[one.turn].append(one)
    earlier = {(one.talk, one.turn): one.prompt_tokens + len(one.token_ids) for one in told}
    total = sum(earlier[one.talk, one.turn - 1] for one in told if one.turn)
    firsts = by_turn[0]
    num_groups = -(-len(firsts) // GROUP)
    total += sum(one.prompt_tokens for one in firsts) - num_groups * (firsts[0].prompt_tokens - system_tokens)
    return total


def rate(told: list[Told]) -> float:
    """Turns per second between the first question and the last answer."""
    return len(told) / (max(one.ended for one in told) - min(one.started for one in told))


def same_tokens(load: Load, plan: Plan, turns: int) -> dict[str, Any]:
    """One greedy trajectory by every way, alone and with empty caches: do they generate the same?

    The policy server's pixels are those of way direct_ready bit for bit; SGLang's own processor computes them
    on the GPU, and bf16 may then take another of two nearly equal tokens, after which the texts part.
    """
    generated: dict[Way, list[Told]] = {}
    ways: tuple[Way, ...] = ("policy", "direct_ready", "direct")
    for way in ways:
        flush(plan)
        (talk,) = talks_of(Case(concurrent=1, turns=turns), f"greedy-{way}-{time.monotonic():.1f}")
        generated[way] = load.run(replace(plan, temperature=0.0), [talk], concurrent=1, way=way)
    return {way: _compared(generated["policy"], generated[way]) for way in ways[1:]}


def _compared(ours: list[Told], others: list[Told]) -> dict[str, Any]:
    first, other = ours[0], others[0]
    count = _same_start(first.token_ids, other.token_ids)
    apart = [abs(a - b) for a, b in zip(first.logprobs[:count], other.logprobs[:count], strict=True)]
    pairs = list(zip(ours, others, strict=True))
    return {
        "same_in_first_turn": count,
        "of": len(first.token_ids),
        "max_logprob_difference": max(apart, default=None),
        "same_turns": sum(a.token_ids == b.token_ids for a, b in pairs),
        "turns": len(pairs),
        "same_prompt_lengths": all(a.prompt_tokens == b.prompt_tokens for a, b in pairs),
    }


def _same_start(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    pairs = zip(a, b, strict=False)
    return next((place for place, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


def flush(plan: Plan) -> None:
    """Empty the servers' prefix caches."""
    for url in plan.server_urls:
        with Sglang(url) as server:
            server.run(server_endpoints.flush_cache())
