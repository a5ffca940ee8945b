"""Every algorithm against an implementation that is not ours: TRL's code, or the paper's formula in numpy.

Numpy derivations spell the loss out per sequence with loops and take gradients by central
differences in fp64, so that they share neither code nor autograd with `training.update.losses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from testing.training.objective_on_tensors import Tensors
from testing.training.objective_on_tensors import our_objective as ours
from testing.training.trl_reference import MAX_TOKENS, make_tensors, trl_trainer
from testing.training.trl_reference import trl_objective as trl
from training.batch.advantages import group_advantages

BAR = 1e-5


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return trl_trainer(tmp_path_factory.mktemp("trl"))


def assert_same(mine: tuple, theirs: tuple, bar: float = BAR) -> None:
    assert mine[0] == pytest.approx(float(theirs[0]), abs=bar)
    torch.testing.assert_close(mine[1].double(), torch.as_tensor(theirs[1]).double(), rtol=1e-4, atol=bar)
    assert float(mine[1].abs().max()) > 1e-3, "the case has a gradient to compare"


def test_cispo_equals_trl(trainer: Any) -> None:
    tensors = make_tensors(1)
    mine = ours(tensors, name="cispo", dual_clip=0, clip_low=1.0, clip_high=0.1)
    assert_same(mine, trl(tensors, trainer, loss_type="cispo", epsilon_high=1.1))


def test_dr_grpo_equals_trl(trainer: Any) -> None:
    tensors = make_tensors(2)
    mine = ours(tensors, name="dr_grpo", aggregation="constant", scale_advantages=False)
    assert_same(mine, trl(tensors, trainer, loss_type="dr_grpo"))


def test_clip_higher_and_dual_clip_equal_trl(trainer: Any) -> None:
    tensors = make_tensors(3)
    tensors["policy"] = tensors["policy"] + 1.2 * torch.randn(
        tensors["policy"].shape, generator=torch.Generator().manual_seed(5)
    )
    plain = ours(tensors, clip_low=0.1, clip_high=0.4, dual_clip=0)
    bounded = ours(tensors, clip_low=0.1, clip_high=0.4, dual_clip=2.0)
    assert plain[0] != pytest.approx(bounded[0]), "the bound is at work"
    assert_same(bounded, trl(tensors, trainer, epsilon_low=0.1, epsilon_high=0.4, delta=2.0))


def test_rloo_equals_trl(trainer: Any) -> None:
    from trl import RLOOTrainer

    tensors = make_tensors(4)
    mine = ours(
        tensors, name="rloo", baseline="leave_one_out", scale_advantages=False, aggregation="trajectory_mean"
    )
    assert_same(mine, trl(tensors, trainer, RLOOTrainer._compute_loss))


def test_leave_one_out_equals_the_mean_of_the_siblings() -> None:
    rewards = {7: 1.0, 8: 0.25, 9: 0.0, 11: 0.5}
    found = group_advantages(rewards, scale=False, baseline="leave_one_out")
    values = np.array(list(rewards.values()))
    expected = [value - np.delete(values, place).mean() for place, value in enumerate(values)]
    assert list(found.advantages.values()) == pytest.approx(expected)


def numpy_gradient(loss: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Central differences in fp64."""
    gradient = np.zeros_like(at)
    for place in np.ndindex(*at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-6
        gradient[place] = (loss(at + step) - loss(at - step)) / 2e-6
    return gradient


def rows_of(tensors: Tensors) -> list[dict[str, np.ndarray]]:
    """Each sequence's own tokens, without padding, in fp64."""
    rows = []
    for row, mask in enumerate(tensors["mask"].bool()):
        rows.append({
            name: tensors[name][row][mask].double().numpy() if tensors[name].ndim == 2
            else float(tensors[name][row])
            for name in ("behaviour", "reference", "advantages", "now")
            if name in tensors
        })  # fmt: skip
    return rows


def derived(tensors: Tensors, of_row: Callable[[np.ndarray, dict], np.ndarray]) -> tuple:
    """Token mean over the batch of `of_row(policy logprobs of a sequence, its other numbers)`."""
    masks = tensors["mask"].bool().numpy()
    rows = rows_of(tensors)

    def loss(policy: np.ndarray) -> float:
        total = sum(of_row(policy[i][masks[i]], row).sum() for i, row in enumerate(rows))
        return float(total) / masks.sum()

    at = tensors["policy"].double().numpy()
    return loss(at), numpy_gradient(loss, at)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_kl_terms_equal_their_formula(estimator: str) -> None:
    tensors = make_tensors(6)
    tensors["advantages"] = torch.zeros(8)

    def of_row(policy: np.ndarray, row: dict) -> np.ndarray:
        x = policy - row["reference"]
        return 0.3 * (x**2 / 2 if estimator == "k2" else np.exp(-x) - 1 + x)

    settings = {"kl_coefficient": 0.3, "kl_estimator": estimator, "reference_path": "x"}
    assert_same(ours(tensors, **settings), derived(tensors, of_row))


def test_k1_as_a_penalty_has_the_gradient_of_k2_on_policy() -> None:
    tensors = make_tensors(7)
    tensors["behaviour"] = tensors["policy"].clone()
    tensors["advantages"] = torch.zeros(8)
    settings = {"kl_coefficient": 0.3, "reference_path": "x"}
    penalty = ours(tensors, kl_estimator="k1", **settings)[1]
    torch.testing.assert_close(penalty, ours(tensors, kl_estimator="k2", **settings)[1])
    assert float(penalty.abs().max()) > 1e-3


def test_gspo_token_equals_its_formula() -> None:
    tensors = make_tensors(8)
    tensors["advantages"] = torch.randn(8, MAX_TOKENS, generator=torch.Generator().manual_seed(1))
    tensors["now"] = tensors["policy"]  # what sg[] holds still while the differences are taken

    def of_row(policy: np.ndarray, row: dict) -> np.ndarray:
        ratio = math.exp(float(np.mean(row["now"] - row["behaviour"]))) * np.exp(policy - row["now"])
        clipped = np.clip(ratio, 1 - 0.03, 1 + 0.04)
        return np.maximum(-ratio * row["advantages"], -clipped * row["advantages"])

    assert_same(ours(tensors, name="gspo_token", clip_low=0.03, clip_high=0.04), derived(tensors, of_row))


def test_success_likelihood_is_a_weighted_nll_beside_the_policy_term() -> None:
    tensors = make_tensors(9)
    plain_loss, plain_gradient = ours(tensors)
    tensors["imitation"] = torch.tensor([0.5, 0.0] * 4)
    loss, gradient = ours(tensors, success_likelihood=0.5)
    weight = tensors["imitation"][:, None] * tensors["mask"] / tensors["mask"].sum()
    assert loss - plain_loss == pytest.approx(float(-(weight * tensors["policy"]).sum()), abs=BAR)
    torch.testing.assert_close(gradient - plain_gradient, -weight, rtol=1e-4, atol=1e-6)


def test_rejection_fine_tuning_equals_the_mean_nll_of_what_it_keeps() -> None:
    tensors = {name: values.double() for name, values in make_tensors(10).items()}
    tensors["likelihood"] = torch.ones(8)
    found = ours(tensors, name="rejection_fine_tuning", clip_low=0.0, clip_high=0.0)
    assert_same(found, derived(tensors, lambda policy, row: -policy), bar=1e-6)


def test_discounted_turns_equal_their_formula() -> None:
    rewards, turns, gamma = {1: 1.0, 2: 0.0, 3: 1.0}, {1: 3, 2: 2, 3: 1}, 0.9
    found = group_advantages(rewards, scale=True, num_turns=turns, discount=gamma)
    rows = {
        key: np.array([rewards[key] * gamma ** (n - 1 - t) for t in range(n)]) for key, n in turns.items()
    }
    mean = np.mean([row.mean() for row in rows.values()])
    variance = sum(((row - mean) ** 2).mean() for row in rows.values()) / (len(rows) - 1)
    for key, row in rows.items():
        assert found.turns[key] == pytest.approx((row - mean) / (math.sqrt(variance) + 1e-6))
        assert found.advantages[key] == pytest.approx(np.mean(found.turns[key]))
    same = group_advantages(rewards, scale=True, num_turns=turns, discount=1.0)
    assert same == group_advantages(rewards, scale=True)
