"""Each term of the objective by itself: its sign, its scale, and what is reported of it."""

from __future__ import annotations

import pytest
import torch

from testing.training.objective_cases import moved, windowed
from testing.training.objective_on_tensors import Tensors, _batch, objective_of
from testing.training.trl_reference import MAX_TOKENS
from training.batch.samples import Sample
from training.contracts.config import AlgorithmConfig
from training.model.policy import TokenScores
from training.update.objective import TOTALS, Objective, batch_counts, likelihood_objective

RECOMPUTED = {"old_logprobs": "recomputed"}


def total(objective: Objective, name: str) -> float:
    return float(objective.totals[TOTALS.index(name)])


def tokens_of(tensors: Tensors, values: torch.Tensor) -> float:
    return float((values * tensors["mask"]).sum())


def test_the_entropy_bonus_lowers_the_loss_by_its_share_of_the_mean_entropy() -> None:
    tensors = moved(1)
    entropy = tensors["entropy"].clone().requires_grad_()
    with_bonus = objective_of(tensors | {"entropy": entropy}, entropy_coefficient=0.1)
    without = objective_of(tensors)
    num_tokens = float(tensors["mask"].sum())
    mean = tokens_of(tensors, tensors["entropy"]) / num_tokens
    assert float(with_bonus.loss.detach() - without.loss) == pytest.approx(-0.1 * mean, rel=1e-5)
    with_bonus.loss.backward()
    assert torch.allclose(entropy.grad, -0.1 * tensors["mask"] / num_tokens), "more entropy costs less"
    assert total(with_bonus, "entropy") == pytest.approx(mean * num_tokens, rel=1e-6)


def test_imitation_reads_the_logprobs_at_temperature_one() -> None:
    tensors = moved(2)
    rows = len(tensors["mask"])
    tensors["plain"] = 2 * tensors["policy"] - 0.5
    tensors["likelihood"] = torch.zeros(rows)
    tensors["likelihood"][0] = 0.5
    tensors["imitation"] = torch.zeros(rows)
    tensors["imitation"][1] = 0.25
    weights = (tensors["likelihood"] + tensors["imitation"])[:, None]
    expected = tokens_of(tensors, -tensors["plain"] * weights) / float(tensors["mask"].sum())
    assert total(objective_of(tensors), "likelihood") == pytest.approx(expected, rel=1e-5)
    del tensors["plain"]
    expected = tokens_of(tensors, -tensors["policy"] * weights) / float(tensors["mask"].sum())
    assert total(objective_of(tensors), "likelihood") == pytest.approx(expected, rel=1e-5)


def test_what_is_imitated_has_no_policy_gradient_term() -> None:
    tensors = moved(3)
    tensors["likelihood"] = torch.zeros(len(tensors["mask"]))
    tensors["likelihood"][0] = 1.0
    found = objective_of(tensors)
    others = tensors["mask"].clone()
    others[0] = 0
    assert total(found, "policy_tokens") == float(others.sum())
    assert found.per_sequence[0].tolist() == [0, 0, 0]
    assert found.per_sequence[1:, 2].tolist() == others[1:].sum(dim=-1).tolist()


@pytest.mark.parametrize("settings", [{}, RECOMPUTED], ids=["to the engine", "recomputed"])
def test_the_reported_ratio_is_the_one_to_the_engine(settings: dict[str, str]) -> None:
    tensors = moved(4)
    to_engine = {"": tensors["policy"], "recomputed": tensors["proximal"]}[settings.get("old_logprobs", "")]
    expected = tokens_of(tensors, (to_engine - tensors["behaviour"]).exp())
    found = objective_of(tensors, **settings)
    assert total(found, "ratio") == pytest.approx(expected, rel=1e-5)
    assert float(found.per_sequence[:, 0].sum()) == pytest.approx(expected, rel=1e-5)


def test_a_constant_counts_trajectories_and_not_their_sequences() -> None:
    tensors = windowed(5)
    policy = objective_of(tensors, aggregation="constant")
    sums = objective_of(tensors, aggregation="token_mean")
    num_trajectories = len(tensors["trajectory"].unique())
    assert num_trajectories == 4 < len(tensors["mask"])
    expected = float(sums.loss) * float(tensors["mask"].sum()) / (num_trajectories * MAX_TOKENS)
    assert float(policy.loss) == pytest.approx(expected, rel=1e-5)


def test_k1_goes_into_the_advantage_and_the_others_into_the_loss() -> None:
    tensors = moved(6)
    plain = objective_of(tensors)
    for estimator in ("k2", "k3"):
        found = objective_of(tensors, kl_coefficient=0.3, kl_estimator=estimator)
        share = total(found, "kl") / float(tensors["mask"].sum())
        assert float(found.loss - plain.loss) == pytest.approx(0.3 * share, rel=1e-4)
        assert total(found, "policy") == pytest.approx(total(plain, "policy"))
    k1 = objective_of(tensors, kl_coefficient=0.3, kl_estimator="k1")
    difference = (tensors["policy"] - tensors["reference"]) * tensors["mask"]
    advantages = tensors["advantages"][:, None] - 0.3 * difference
    expected = objective_of(tensors | {"advantages": advantages})
    assert float(k1.loss) == pytest.approx(float(expected.loss), rel=1e-5)
    assert float(k1.loss) != pytest.approx(float(plain.loss), rel=1e-3)
    assert total(k1, "kl") == pytest.approx(float(difference.sum()), rel=1e-5)


def test_sft_pays_for_entropy_too() -> None:
    batch, counts = _batch(tensors := moved(7), tensors["policy"], AlgorithmConfig())
    scores = TokenScores(tensors["policy"], tensors["entropy"])
    plain = likelihood_objective(batch, scores, counts)
    found = likelihood_objective(batch, scores, counts, entropy_coefficient=0.1)
    mean = tokens_of(tensors, tensors["entropy"]) / float(tensors["mask"].sum())
    assert float(found.loss - plain.loss) == pytest.approx(-0.1 * mean, rel=1e-4)


def test_a_batch_counts_trajectories_once() -> None:
    parts = [(1, (0, 1, 1)), (1, (1, 1, 1)), (2, (0, 0, 1))]
    samples = [
        Sample(
            trajectory_id=trajectory,
            group_id=1,
            token_ids=(9, 9, 9),
            loss_mask=mask,
            behaviour_logprobs=(0.0,) * 3,
            policy_versions=(0,) * 3,
        )
        for trajectory, mask in parts
    ]
    found = batch_counts(samples, constant=64.0)
    assert (found.num_tokens, found.num_sequences, found.num_trajectories) == (6, 3, 2)
    assert found.constant == 64.0
