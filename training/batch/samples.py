"""Trajectories become samples: the token-level items that the trainer eats.

A trajectory whose context only grows is exactly one sequence; one whose history
is a window (`training.render.history_window`) is one sequence per distinct prefix. All of its samples share
the trajectory's advantage, and no cut is ever made inside an image.

Invariant, checked for every trajectory: over its samples the loss masks mark exactly the
recorded completion tokens of the turns that are not context only, in order and each once, every
completion stands where the policy server saw it, and the image pads of each sequence are those of
its screenshots' grids.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from training.contracts.config import AlgorithmConfig
from training.contracts.types import Completion, Trajectory
from training.render.prompt_digest import prompt_digest
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sequence for the trainer.

    Example: `Sample(trajectory_id=7, group_id=2, token_ids=(1, 5, 9), loss_mask=(0, 0, 1), ...)`.
    """

    trajectory_id: int
    group_id: int
    token_ids: tuple[int, ...]
    """Prompt, image pads and completions of all turns. [num_tokens]"""
    loss_mask: tuple[int, ...]
    """1 on completion tokens. [num_tokens]"""
    behaviour_logprobs: tuple[float, ...]
    """Nats; 0.0 where the mask is 0; NaN on the completion tokens of a likelihood sample. [num_tokens]"""
    policy_versions: tuple[int, ...]
    """Version that sampled each token, -1 elsewhere. [num_tokens]"""
    images: tuple[str, ...] = ()
    """sha256 of each screenshot, in order. [num_images]"""
    grids: tuple[tuple[int, int, int], ...] = ()
    """Patch grid (t, h, w) of each screenshot. [num_images]"""
    advantage: float = 0.0
    """Of the trajectory."""
    token_advantages: tuple[float, ...] = ()
    """Per token, when turns have advantages of their own; empty = `advantage` everywhere. [num_tokens]"""
    proximal_logprobs: tuple[float, ...] = ()
    """By the trainer before the step's first update; empty = not needed. [num_tokens]"""
    rest_log_ratio: float = 0.0
    """Sum of the log ratios of the trajectory's other samples, now; for ratios of a trajectory."""
    rest_weight: float = 0.0
    """Sum of the weights that `algorithm.correction` gives the tokens of those other samples."""
    trajectory_tokens: int = 0
    """Loss tokens of all samples of the trajectory; 0 = this sample is the whole trajectory."""
    imitation_weight: float = 0.0
    """Weight of an NLL term beside the policy-gradient term (SFT on success)."""
    as_likelihood: bool = False
    """True when it enters as an NLL term: it has no behaviour logprobs."""
    likelihood_weight: float = 1.0
    """Weight of that NLL term."""
    replay_entry_id: int | None = None

    @property
    def num_loss_tokens(self) -> int:
        return sum(self.loss_mask)


def has_behaviour_logprobs(trajectory: Trajectory) -> bool:
    """True when every turn of it was sampled by a policy that recorded its logprobs."""
    if not trajectory.turns:
        return False
    return all(_is_recorded(turn.completion) for turn in trajectory.turns)


def _is_recorded(completion: Completion | None) -> bool:
    if completion is None or not completion.token_ids:
        return False
    return len(completion.behaviour_logprobs) == len(completion.token_ids)


def build_samples(
    trajectory: Trajectory,
    renderer: Renderer,
    *,
    advantage: float,
    turn_advantages: Sequence[float] = (),
    trained_turns: Collection[int] | None = None,
    likelihood_weight: float = 1.0,
    merge_size: int = 2,
    image_token_id: int | None = None,
) -> list[Sample]:
    """The samples of `trajectory`, sharing its advantage; `group_id` is the trajectory's own.

    `turn_advantages`: one per turn, empty = `advantage` for all. `trained_turns`: only the completions of
    these turns are trained on, None = all; sequences without any are left out. Raises ValueError when what
    was rendered is not what was sampled.
    """
    sequences = renderer.render_sequences(trajectory)
    as_likelihood = not has_behaviour_logprobs(trajectory)
    everything = [
        Sample(
            trajectory_id=trajectory.trajectory_id,
            group_id=trajectory.group_id,
            token_ids=tuple(rendered.token_ids),
            loss_mask=tuple(int(bit) for bit in rendered.loss_mask),
            behaviour_logprobs=tuple(float(value) for value in rendered.behaviour_logprobs),
            policy_versions=tuple(rendered.policy_versions),
            images=tuple(rendered.images),
            grids=tuple((int(t), int(h), int(w)) for t, h, w in rendered.grids),
            advantage=advantage,
            token_advantages=_token_advantages(rendered, turn_advantages),
            as_likelihood=as_likelihood,
            likelihood_weight=likelihood_weight,
            replay_entry_id=trajectory.replay_entry_id,
        )
        for rendered in sequences
    ]
    check_samples(everything, trajectory, merge_size=merge_size, image_token_id=image_token_id)
    if not as_likelihood:
        _check_places(sequences, trajectory)
    if trained_turns is not None:
        everything = _only_turns(everything, sequences, trained_turns)
    return share_counts(everything)


def share_counts(samples: Sequence[Sample]) -> list[Sample]:
    """The samples that have loss tokens; those of split trajectories know the trajectory's loss tokens."""
    samples = [sample for sample in samples if sample.num_loss_tokens]
    tokens: Counter[int] = Counter()
    for sample in samples:
        tokens[sample.trajectory_id] += sample.num_loss_tokens
    pieces = Counter(sample.trajectory_id for sample in samples)
    return [
        replace(sample, trajectory_tokens=tokens[sample.trajectory_id])
        if pieces[sample.trajectory_id] > 1
        else replace(sample, trajectory_tokens=0)
        for sample in samples
    ]


def without_stale_tokens(sample: Sample, oldest_version: int) -> Sample:
    """`sample` without the loss of tokens that a policy older than `oldest_version` sampled."""
    bits = zip(sample.loss_mask, sample.policy_versions, strict=True)
    mask = tuple(int(bit and (version < 0 or version >= oldest_version)) for bit, version in bits)
    return replace(sample, loss_mask=mask)


def fresh_tokens(samples: list[Sample], policy_version: int, algorithm: AlgorithmConfig) -> list[Sample]:
    """The samples with a loss on what is fresh enough; all of it unless the config masks token by token."""
    if not algorithm.mask_stale_tokens:
        return samples
    oldest = policy_version - algorithm.max_staleness
    own = [s if s.replay_entry_id is not None else without_stale_tokens(s, oldest) for s in samples]
    return share_counts(own)


def _token_advantages(rendered: RenderedSequence, turn_advantages: Sequence[float]) -> tuple[float, ...]:
    if not turn_advantages:
        return ()
    values = [0.0] * len(rendered.token_ids)
    for turn, (start, end) in zip(rendered.turns, rendered.spans, strict=True):
        values[start:end] = [turn_advantages[turn]] * (end - start)
    return tuple(values)


def _only_turns(
    samples: Sequence[Sample], sequences: Sequence[RenderedSequence], trained: Collection[int]
) -> list[Sample]:
    """The samples with a loss on the `trained` turns alone; contexts stay as they were seen."""
    kept = []
    for sample, rendered in zip(samples, sequences, strict=True):
        mask = list(sample.loss_mask)
        for turn, (start, end) in zip(rendered.turns, rendered.spans, strict=True):
            if turn not in trained:
                mask[start:end] = [0] * (end - start)
        kept.append(replace(sample, loss_mask=tuple(mask)))
    return kept


def check_samples(
    samples: Sequence[Sample], trajectory: Trajectory, *, merge_size: int, image_token_id: int | None
) -> None:
    """Raise ValueError unless `samples` hold exactly the recorded completion tokens and their image pads."""
    where = f"trajectory {trajectory.trajectory_id}"
    for sample in samples:
        _check_lists(sample, where)
        _check_images(sample, where, merge_size, image_token_id)
    if not any(sample.num_loss_tokens for sample in samples):
        raise ValueError(f"{where}: it has no completion tokens to learn from")
    if not samples[0].as_likelihood:
        _check_recorded(samples, trajectory, where)


def _check_lists(sample: Sample, where: str) -> None:
    num_tokens = len(sample.token_ids)
    for name in ("loss_mask", "behaviour_logprobs", "policy_versions"):
        if len(getattr(sample, name)) != num_tokens:
            raise ValueError(
                f"{where}: {name} has {len(getattr(sample, name))} items for {num_tokens} tokens"
            )
    if sample.loss_mask and sample.loss_mask[0]:
        raise ValueError(f"{where}: its first token is marked as sampled, but nothing precedes it")


def _check_images(sample: Sample, where: str, merge_size: int, image_token_id: int | None) -> None:
    if len(sample.images) != len(sample.grids):
        raise ValueError(f"{where}: {len(sample.images)} images but {len(sample.grids)} grids")
    if image_token_id is None:
        return
    pads = sum(token == image_token_id for token in sample.token_ids)
    expected = sum(t * h * w for t, h, w in sample.grids) // merge_size**2
    if pads != expected:
        raise ValueError(f"{where}: {pads} image pads, but its grids need {expected}")


def _check_recorded(samples: Sequence[Sample], trajectory: Trajectory, where: str) -> None:
    trained = [turn for turn in trajectory.turns if not turn.is_context]
    completions = [turn.completion for turn in trained if turn.completion is not None]
    tokens = [token for completion in completions for token in completion.token_ids]
    logprobs = [value for completion in completions for value in completion.behaviour_logprobs]
    marked = [(sample, i) for sample in samples for i, bit in enumerate(sample.loss_mask) if bit]
    if [sample.token_ids[i] for sample, i in marked] != tokens:
        raise ValueError(f"{where}: the tokens marked for the loss are not the tokens that were sampled")
    kept = [sample.behaviour_logprobs[i] for sample, i in marked]
    if kept != logprobs:
        raise ValueError(f"{where}: the behaviour logprobs moved away from their tokens")
    if not all(math.isfinite(value) for value in kept):
        raise ValueError(f"{where}: a behaviour logprob is not finite")


def _check_places(sequences: Sequence[RenderedSequence], trajectory: Trajectory) -> None:
    """Raise ValueError unless every completion has the tokens before it that the policy server had."""
    for rendered in sequences:
        for turn, (start, _) in zip(rendered.turns, rendered.spans, strict=True):
            completion = trajectory.turns[turn].completion
            where = f"trajectory {trajectory.trajectory_id}, turn {turn}"
            counted = completion.num_prompt_tokens if completion is not None else 0
            if counted and counted != start:
                raise ValueError(
                    f"{where}: {start} tokens before its completion, but the policy server had {counted}: it "
                    "saw another context"
                )
            seen = completion.prompt_digest if completion is not None else ""
            if seen and seen != prompt_digest(rendered.token_ids[:start]):
                raise ValueError(
                    f"{where}: the {start} tokens before its completion are others than the policy server "
                    "had: it saw other words"
                )
