"""What benchmarks.gpu.smoldesk reads off its evaluations: shares with intervals, pass@k, and the bar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any

from training.statistics.share_interval import wilson_interval

Counts = Sequence[tuple[int, int]]
"""(solved, draws) of each task."""
KS = (1, 8, 64)
GAINS = {"form": 0.30, "rename": 0.30, "mixed": 0.15}
NEUTRAL, PRESSED, PASS_GAIN = 0.05, 0.70, 0.10


def pass_at(k: int, counts: Counts) -> float | None:
    """The chance that one of k draws of a task solves it, without bias (Chen et al., 2021)."""
    if not counts or min(draws for _, draws in counts) < k:
        return None
    return sum(1 - comb(draws - solved, k) / comb(draws, k) for solved, draws in counts) / len(counts)


def looks_of(rows: Iterable[tuple[str, int, float, Mapping[str, Sequence[int]]]]) -> list[dict[str, Any]]:
    """Every evaluation by family; solved means full score, ended by the agent. Outcomes by task are kept."""
    return [
        {
            "name": name,
            "step": step,
            "temperature": temperature,
            "families": by_family(results),
            "by_task": {task: [won - at_limit, draws] for task, (won, draws, _, at_limit) in results.items()},
        }
        for name, step, temperature, results in rows
    ]


def by_family(results: Mapping[str, Sequence[int]]) -> dict[str, dict[str, Any]]:
    """Share solved with its interval, and pass@k, of each family."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for task, (won, draws, _, at_limit) in results.items():
        found[task.split("/")[1]].append((won - at_limit, draws))
    return {family: share(counts) for family, counts in sorted(found.items())}


def share(counts: Counts) -> dict[str, Any]:
    """Of several draws of a task the interval takes each for one trial: it is too narrow then."""
    solved, draws = sum(won for won, _ in counts), sum(number for _, number in counts)
    low, high = wilson_interval(solved, draws)
    passes = {f"pass@{k}": value for k in KS if (value := pass_at(k, counts)) is not None}
    return {"solved": solved, "draws": draws, "tasks": len(counts), "low": low, "high": high, **passes}


def passes_at(looks: Iterable[Mapping[str, Any]], step: int) -> dict[str, dict[str, float]]:
    """Family -> pass@k of the sampled evaluation after this step; each of several draws counts for pass@1."""
    found: dict[str, dict[str, float]] = {}
    for look in looks:
        if look["step"] == step and look["temperature"] != 0:
            for family, one in look["families"].items():
                found[family] = {key: value for key, value in one.items() if key.startswith("pass@")}
    return found


def ends(run: Mapping[str, Any], *, greedy: bool) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The first and the last evaluation of one kind, by family; None when there are not two."""
    looks = sorted(
        (look for look in run["looks"] if (look["temperature"] == 0) == greedy), key=lambda look: look["step"]
    )
    if len(looks) < 2 or looks[0]["step"] == looks[-1]["step"]:
        return None
    return looks[0]["families"], looks[-1]["families"]


def rate(found: Mapping[str, Any]) -> float:
    return found["solved"] / found["draws"] if found["draws"] else 0.0


def overall(families: Mapping[str, Any]) -> float:
    """Of all families of an evaluation."""
    return rate({key: sum(one[key] for one in families.values()) for key in ("solved", "draws")})


def table(runs: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """A row for every run and family."""
    header = ("run", "family", "greedy before", "after", "sampled before", "after", "pass@8 before", "after")
    rows = []
    for key, run in sorted(runs.items()):
        greedy, sampled = ends(run, greedy=True), ends(run, greedy=False)
        if greedy is None or sampled is None:
            continue
        for family in sorted(greedy[0]):
            pairs = (*greedy, *sampled)
            cells = [
                f"{rate(one[family]):.0%} [{one[family]['low']:.0%}, {one[family]['high']:.0%}]"
                for one in pairs
            ]
            passes = [f"{one[family].get('pass@8', 0):.0%}" for one in sampled]
            rows.append((key, family, *cells, *passes))
    return header, rows


def missed(runs: Mapping[str, Any], starts: Sequence[str], seeds: Sequence[int]) -> list[str]:
    """What of the bar was missed, in words."""
    found: list[str] = []
    for seed in seeds:
        for start, arm, judge in BARS:
            if start in starts:
                key = f"{start}/{arm}/seed {seed}"
                both = [ends(runs[key], greedy=greedy) if key in runs else None for greedy in (True, False)]
                if both[0] is None or both[1] is None:
                    found.append(f"{key}: not evaluated at both ends")
                else:
                    found += [f"{key}: {words}" for words in judge(both[0], both[1])]
    return found


Ends = tuple[dict[str, Any], dict[str, Any]]


def _learned(greedy: Ends, sampled: Ends) -> list[str]:
    found = []
    for family, gain in GAINS.items():
        for word, (before, after) in (("greedy", greedy), ("sampled", sampled)):
            if (rise := rate(after[family]) - rate(before[family])) < gain:
                found.append(f"{family} {word} {rise:+.0%}, bar {gain:+.0%}")
    passes = [
        after["pass@8"] - sampled[0][family]["pass@8"]
        for family, after in sampled[1].items()
        if "pass@8" in after
    ]
    if not passes or max(passes) < PASS_GAIN:
        found.append(f"pass@8 rises by {max(passes, default=0.0):+.0%} at most: sharpening alone")
    return found


def _stayed(greedy: Ends, sampled: Ends) -> list[str]:
    found = []
    for word, (before, after) in (("greedy", greedy), ("sampled", sampled)):
        moved = overall(after) - overall(before)
        if abs(moved) > NEUTRAL:
            found.append(f"{word} {moved:+.0%}: no neutral control")
    return found


def _bound(greedy: Ends, _sampled: Ends) -> list[str]:
    after = rate(greedy[1]["press"])
    return [] if after >= PRESSED else [f"press {after:.0%} greedily, bar {PRESSED:.0%}"]


BARS = (
    ("demonstrated", "grpo", _learned),
    ("demonstrated", "shuffled", _stayed),
    ("uninformative", "grpo", _bound),
)
