"""How a sweep searches: which knobs over which values, how many arms and seeds, by which number it judges."""

import math
from typing import Literal

from training.contracts.config import Section
from training.contracts.config.section import knob

Scalar = bool | int | float | str

GREEDY, SAMPLED = "evaluation/greedy", "evaluation/sampled"
"""Held-out success as pages show it; every other metric is a series of the trainer, e.g. rollout/solved."""
MAX_ARMS, MAX_SEEDS = 200, 20


class Axis(Section):
    """One knob and what it may be: listed values, or everything between two numbers."""

    path: str
    values: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    log: bool = False
    """Of a range: every order of magnitude is as likely as any other."""
    whole: bool = False

    @property
    def is_range(self) -> bool:
        return not self.values

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value of a range."""
        assert self.low is not None, "an axis without values is a range"
        assert self.high is not None
        return self.low, self.high

    @property
    def words(self) -> str:
        """ "1e-06, 3e-06" or "1e-06 .. 0.0001 log", as it is typed."""
        if not self.is_range:
            return ", ".join(
                f"{value:g}" if isinstance(value, float) else str(value) for value in self.values
            )
        return f"{self.low:g} .. {self.high:g}{' log' if self.log else ''}"


class SearchSettings(Section):
    """How to search, whatever is searched over."""

    search: Literal["grid", "random", "tpe"] = knob(
        "grid", "grid = every combination; random; tpe = near what was good so far (TPE of Optuna)."
    )
    num_seeds: int = knob(
        1, "Experiments per arm, with optimiser.seed and the ones after it.", ge=1, le=MAX_SEEDS
    )
    num_arms: int = knob(0, "Combinations tried; 0 = the whole grid.", ge=0, le=MAX_ARMS)
    arms_at_once: int = knob(2, "Arms in the queue at a time; tpe learns from those that ended.", ge=1, le=20)
    metric: str = knob(
        GREEDY,
        "What an arm is judged by: evaluation/greedy, evaluation/sampled (what the agent solved and ended in "
        "the last one), or a series such as rollout/solved (mean of its last tenth).",
    )
    direction: Literal["maximise", "minimise"] = "maximise"
    stop_hopeless: bool = knob(
        True, "Stop arms whose best value so far is below the median of the finished ones at the same step."
    )
    warmup_steps: int = knob(5, "Steps before an arm may be stopped.", unit="steps", ge=0)
    seed: int = knob(0, "Of the search itself.", ge=0)


class SweepPlan(SearchSettings):
    """A search over axes; without any it is one config with several seeds."""

    axes: tuple[Axis, ...] = ()

    @property
    def is_share(self) -> bool:
        """True when its metric is a share, shown in percent."""
        return self.metric in (GREEDY, SAMPLED, "rollout/success", "rollout/solved")

    @property
    def grid_size(self) -> int | None:
        """Combinations of listed values; None with a range."""
        return (
            None
            if any(axis.is_range for axis in self.axes)
            else math.prod(len(axis.values) for axis in self.axes)
        )

    @property
    def total_arms(self) -> int:
        """Arms that will be tried."""
        size = self.grid_size
        if self.search != "grid" or size is None:
            return self.num_arms
        return min(self.num_arms or size, size)

    @property
    def num_experiments(self) -> int:
        return self.total_arms * self.num_seeds
