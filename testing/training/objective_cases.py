"""What is compared with TRL's code, or with the papers' formulas in fp64, to 1e-6 in loss and gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from testing.training.fp64_reference import fp64_objective
from testing.training.objective_on_tensors import Tensors, our_objective
from testing.training.trl_reference import make_tensors, trl_objective

BAR = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectiveCase:
    """One setting, its tensors, and what TRL calls the same."""

    name: str
    settings: dict[str, Any]
    make: Callable[[int], Tensors]
    trl: Callable[[Tensors], dict[str, Any]] | None = None
    """TRL's options; None = compared with the formula only."""
    theirs: Callable[[Tensors], Tensors] = field(default=lambda tensors: tensors)
    """What TRL gets where that differs."""

    def differences(self, trainer: Any) -> list[tuple[str, float, float, float]]:
        """(compared with, our loss, |loss difference|, max |gradient difference|)"""
        tensors = {
            name: value.double() if value.is_floating_point() else value
            for name, value in self.make(hash_free_seed(self.name)).items()
        }
        loss, gradient = our_objective(tensors, **self.settings)
        assert float(gradient.abs().max()) > 1e-3, "the case has a gradient to compare"
        others = [("formula, fp64", fp64_objective(tensors, **self.settings))]
        if self.trl is not None:
            others.append(("TRL", trl_objective(self.theirs(tensors), trainer, **self.trl(tensors))))
        rows = []
        for what, (other, found) in others:
            # TRL keeps the rows without a token of the loss, which ours leaves out: their gradient is 0.
            whole = np.zeros(np.asarray(found).shape)
            whole[: len(gradient)] = gradient
            rows.append(
                (what, loss, abs(loss - float(other)), float(np.abs(whole - np.asarray(found)).max()))
            )
        return rows


def hash_free_seed(name: str) -> int:
    """A seed that is the same in every process."""
    return sum(map(ord, name))


def moved(seed: int) -> Tensors:
    """Stale tokens, and a policy that earlier updates of the step have moved."""
    tensors = make_tensors(seed)
    noise = torch.Generator().manual_seed(seed + 1)
    shape = tensors["policy"].shape
    tensors["proximal"] = tensors["behaviour"] + 0.4 * torch.randn(shape, generator=noise)
    tensors["policy"] = tensors["proximal"] + 0.3 * torch.randn(shape, generator=noise)
    return tensors


def barely_moved(seed: int) -> Tensors:
    """The same with a policy that is within GSPO's published clip for some sequences and not for others."""
    tensors = moved(seed)
    shift = torch.linspace(-6e-4, 6e-4, len(tensors["policy"]))[:, None]
    tensors["policy"] = tensors["proximal"] + shift
    return tensors


def far_off(seed: int) -> Tensors:
    """Ratios beyond the dual clip."""
    tensors = make_tensors(seed)
    tensors["policy"] = tensors["behaviour"] + 2 * (tensors["policy"] - tensors["behaviour"]) + 0.8
    return tensors


def windowed(seed: int) -> Tensors:
    """Eight sequences of four trajectories: of three, one, two and two; one advantage each."""
    tensors = moved(seed)
    tensors["trajectory"] = torch.tensor([0, 0, 0, 1, 2, 2, 3, 3])
    tensors["advantages"] = tensors["advantages"][tensors["trajectory"]]
    tensors["policy"] = tensors["behaviour"] + 0.1 * (tensors["policy"] - tensors["proximal"])
    del tensors["proximal"]
    return tensors


def windowed_and_moved(seed: int) -> Tensors:
    """The same, recorded by another engine; a trajectory is within the clip where its sequences are not."""
    tensors = windowed(seed)
    noise = torch.Generator().manual_seed(seed + 2)
    tensors["proximal"] = tensors["policy"]
    shifts = torch.tensor([3.0, -2.0, -1.0, 0.2, 2.0, -2.0, 0.5, 0.4])[:, None] * 0.01
    tensors["policy"] = tensors["proximal"] + shifts
    tensors["behaviour"] = tensors["proximal"] + 0.4 * torch.randn(shifts.shape, generator=noise)
    return tensors


def partly_stale(seed: int) -> Tensors:
    """The same without the first trajectory's first two sequences and some tokens of others: too old."""
    tensors = windowed(seed)
    long = tensors["mask"].sum(dim=-1) > 1
    tensors["mask"][long, 0] = 0
    keep = torch.tensor([2, 3, 4, 5, 6, 7])
    return {name: value[keep] for name, value in tensors.items()}


def overlong(seed: int) -> Tensors:
    """The trajectories that ended by themselves: the others' tokens are not there."""
    tensors = moved(seed)
    return {name: value[:5] for name, value in tensors.items()}


def with_void_turns(seed: int) -> Tensors:
    """The last three tokens of every second trajectory are a void turn: min(A, -1), as `negative` has it."""
    tensors = moved(seed)
    by_token = tensors["advantages"][:, None].repeat(1, tensors["mask"].shape[1])
    by_token[::2, -3:] = by_token[::2, -3:].clamp(max=-1.0)
    return tensors | {"advantages": by_token}


def without_credit(seed: int) -> Tensors:
    """The same void turns under `no_credit`: they leave the loss where the advantage is positive."""
    tensors = moved(seed)
    is_paid = tensors["advantages"] > 0
    is_paid[1::2] = False
    tensors["mask"][is_paid, -3:] = 0
    return tensors


def with_cut_rows(tensors: Tensors) -> Tensors:
    """What TRL's `mask_truncated_completions` makes of them: rows without a token of the loss."""
    rows = {name: torch.cat([value, value[:3]]) for name, value in tensors.items()}
    rows["mask"][5:] = 0
    return rows


def old(tensors: Tensors) -> dict[str, Any]:
    """TRL's ratio against recomputed logprobs."""
    return {"inputs": {"old_per_token_logps": tensors["proximal"]}}


def decoupled(low: float, high: float, *, masks: bool = False) -> Callable[[Tensors], dict[str, Any]]:
    """TRL's weight to the engine, as `_generate_and_score_completions` makes it for token_truncate, _mask."""

    def options(tensors: Tensors) -> dict[str, Any]:
        ratio = (tensors["proximal"] - tensors["behaviour"]).exp()
        weight = ratio.clamp(low, high)
        if masks:
            weight = ratio.masked_fill((ratio < low) | (ratio > high), 0.0)
        inputs = old(tensors)["inputs"] | {"importance_sampling_ratio": weight}
        return {"use_vllm": True, "delta": 3.0, "inputs": inputs}

    return options


RECOMPUTED = {"old_logprobs": "recomputed"}
RLOO = {
    "name": "rloo",
    "baseline": "leave_one_out",
    "scale_advantages": False,
    "aggregation": "trajectory_mean",
}
GSPO = RECOMPUTED | {
    "name": "gspo",
    "aggregation": "trajectory_mean",
    "clip_low": 0.01,
    "clip_high": 0.01,
}
OBJECTIVES = (
    ObjectiveCase(name="recomputed", settings=RECOMPUTED, make=moved, trl=lambda t: old(t) | {"delta": 3.0}),
    ObjectiveCase(
        name="recomputed, GSPO with its published clip",
        settings=RECOMPUTED | {"name": "gspo", "clip_low": 3e-4, "clip_high": 4e-4},
        make=barely_moved,
        trl=lambda t: (
            old(t) | {"importance_sampling_level": "sequence", "epsilon_low": 3e-4, "epsilon_high": 4e-4}
        ),
    ),
    ObjectiveCase(
        name="decoupled, truncated weight",
        settings=RECOMPUTED | {"correction": "truncate", "correction_low": 0.7, "correction_high": 1.3},
        make=moved,
        trl=decoupled(0.7, 1.3),
    ),
    ObjectiveCase(
        name="decoupled, masked weight",
        settings=RECOMPUTED | {"correction": "mask", "correction_low": 0.7, "correction_high": 1.3},
        make=moved,
        trl=decoupled(0.7, 1.3, masks=True),
    ),
    ObjectiveCase(
        name="decoupled, GSPO",
        settings=RECOMPUTED | {"name": "gspo", "correction": "truncate", "clip_low": 0.03, "clip_high": 0.04},
        make=moved,
    ),
    ObjectiveCase(name="dual clip 3", settings={}, make=far_off, trl=lambda _: {"delta": 3.0}),
    ObjectiveCase(
        name="overlong masking",
        settings=RECOMPUTED,
        make=overlong,
        trl=lambda t: old(with_cut_rows(t)) | {"delta": 3.0},
        theirs=with_cut_rows,
    ),
    ObjectiveCase(name="void turns, an advantage of their own", settings=RECOMPUTED, make=with_void_turns),
    ObjectiveCase(
        name="void turns without credit",
        settings=RECOMPUTED,
        make=without_credit,
        trl=lambda t: old(t) | {"delta": 3.0},
    ),
    ObjectiveCase(name="windowed, RLOO", settings=RLOO, make=windowed),
    ObjectiveCase(name="windowed, GSPO", settings=GSPO, make=windowed_and_moved),
    ObjectiveCase(
        name="windowed, GSPO, truncated weight",
        settings=GSPO | {"correction": "truncate", "correction_low": 0.7, "correction_high": 1.3},
        make=windowed_and_moved,
    ),
    ObjectiveCase(
        name="windowed, GSPO, masked weight",
        settings=GSPO | {"correction": "mask", "correction_low": 0.7, "correction_high": 1.3},
        make=windowed_and_moved,
    ),
    ObjectiveCase(name="partly stale, GSPO", settings=GSPO | {"old_logprobs": "engine"}, make=partly_stale),
    ObjectiveCase(name="windowed, GRPO", settings={"aggregation": "trajectory_mean"}, make=windowed),
    ObjectiveCase(name="partly stale, RLOO", settings=RLOO, make=partly_stale),
    ObjectiveCase(name="partly stale, GRPO", settings={"aggregation": "trajectory_mean"}, make=partly_stale),
)
