"""The setting that most likely made a run another one than its preset or parent."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from training.content.task_sets.registry import train_alike
from training.contracts.config import ExperimentConfig
from training.planning.presets import load_preset
from webapp.experiments.knob_values import baseline_of, changed_knobs, flatten
from webapp.experiments.knobs import Knob
from webapp.experiments.models import Experiment

LEAST_RATIO = 3.0
"""A number that differs by less than this factor is no suspect."""
BEHAVIOUR = ("tasks.", "model.path", "prompt.", "sampling.", "desktops.max_turns", "desktops.provider")
"""Settings that reach the very first rollouts."""
LEARNING = ("optimiser.", "algorithm.", "rewards.", "replay.", "lora.", "sampling.temperature")
"""Settings that do nothing before the first update; the temperature acts on every rollout, early and late."""
NEVER = {
    "algorithm.groups_per_step",
    "algorithm.num_steps",
    "optimiser.num_processes",
    "optimiser.seed",
    "tasks.revision",
}
"""Sizes and seeds: they change how long or how noisy a run is, not where it goes."""
GRAVE = {"algorithm.reward_control": 3.0, "tasks.task_set": 1.5, "tasks.families": 1.5, "tasks.levels": 1.0}
"""Settings without a number, and how many powers of ten a change of theirs is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One difference, and what to set back."""

    knob: Knob
    own: str
    other: str
    """The text of the preset or parent."""
    origin: str
    """"the preset" or "#12"."""
    ratio: float | None
    """own / other of a number."""

    @property
    def weight(self) -> float:
        """In powers of ten."""
        return abs(math.log10(self.ratio)) if self.ratio else GRAVE.get(self.knob.path, 0.0)

    @property
    def sentence(self) -> str:
        label = self.knob.label[:1].lower() + self.knob.label[1:]
        if self.ratio is None:
            own, other = self.own or "no limit", self.other or "no limit"
            return f"Of {label}, {self.origin} has {other}; this run has {own}."
        times = self.ratio if self.ratio > 1 else 1 / self.ratio
        size = f"{times:.0f} times" if self.ratio > 1 else f"1/{times:.0f} of"
        is_plural = label.endswith("s") and not label.endswith("ss")
        verb, that = ("are", "those") if is_plural else ("is", "that")
        return f"The {label} {verb} {size} {that} of {self.origin} ({self.own}, there {self.other})."


def suspect_of(experiment: Experiment, *, before_updates: bool | None) -> Suspect | None:
    """The gravest difference that can have acted by then; None = when is unknown, so all can."""
    areas = BEHAVIOUR if before_updates else LEARNING if before_updates is False else BEHAVIOUR + LEARNING
    found = [one for one in _differences(experiment) if one.knob.path.startswith(areas)]
    return max(found, key=lambda one: one.weight, default=None)


def differences(
    config: ExperimentConfig, baseline: Mapping[str, str], origin: str, least_ratio: float = LEAST_RATIO
) -> Iterator[Suspect]:
    """Numbers that are far from the baseline's, and grave changes of what is no number."""
    for knob, other, own in changed_knobs(config, baseline):
        ratio = _ratio(knob, own, other)
        is_odd = knob.path in GRAVE if ratio is None else not 1 / least_ratio < ratio < least_ratio
        is_odd = is_odd and not (knob.path == "tasks.task_set" and train_alike(own, other))
        if is_odd and knob.path not in NEVER:
            yield Suspect(knob=knob, own=own, other=other, origin=origin, ratio=ratio)


def _differences(experiment: Experiment) -> Iterator[Suspect]:
    """From the preset; from the parent where there is no preset."""
    if experiment.preset and (preset := load_preset(experiment.preset)):
        origin, baseline = "the preset", baseline_of(preset)
    elif experiment.cloned_from:
        origin, baseline = f"#{experiment.cloned_from_id}", flatten(experiment.cloned_from.settings)
    else:
        return
    yield from differences(experiment.settings, baseline, origin)


def _ratio(knob: Knob, own: str, other: str) -> float | None:
    if knob.kind not in ("decimal", "whole"):
        return None
    try:
        first, second = float(own), float(other)
    except ValueError:
        return None
    return first / second if first > 0 and second > 0 else None
