"""How a replay entry may enter a step of this experiment: as it was sampled, as likelihood, or not at all.

same fingerprint, sampled by a policy of known, low age -> its very tokens and behaviour logprobs; turns
                                                           that people masked stay as context
another or unknown fingerprint, a person's, an oracle's -> rendered again from its actions, as likelihood
cannot be rendered, too old a policy, ended by a limit   -> skipped, and reported with the reason
"""

from dataclasses import dataclass, field

from training.batch.samples import build_samples, has_behaviour_logprobs
from training.contracts.config import ExperimentConfig
from training.contracts.coordinator import ReplayCandidate
from training.contracts.outcome import SuccessRule
from training.contracts.trainer_reports import ReplaySkip, SkipReason
from training.contracts.types import Trajectory
from training.render.demonstrations import NotRenderable, as_demonstration, check_end, keeps_tokens
from training.render.renderer import Renderer
from training.rewards.success_rule import success_rule
from training.rollouts.untrainable import Untrainable, check_lengths, check_recorded


@dataclass(slots=True, kw_only=True)
class ReplayAdmission:
    """Decides for the entries that one step wants to use."""

    renderer: Renderer
    config: ExperimentConfig
    vocabulary: int
    """Token ids that the model has."""
    rule: SuccessRule = field(init=False)
    """Which outcomes the experiment's updates tell from the rest."""
    skips: list[ReplaySkip] = field(default_factory=list)
    """What it turned down."""

    def __post_init__(self) -> None:
        self.rule = success_rule(self.config.algorithm, self.config.rewards)

    def admit(self, candidate: ReplayCandidate) -> ReplayCandidate | None:
        """The candidate in the form in which it enters; None when it cannot."""
        try:
            trajectory = self._form(candidate)
        except NotRenderable as error:
            self.skips.append(
                ReplaySkip(entry_id=candidate.entry_id, reason=error.reason, message=str(error))
            )
            return None
        return candidate.model_copy(update={"trajectory": trajectory})

    def _form(self, candidate: ReplayCandidate) -> Trajectory:
        trajectory = candidate.trajectory
        check_end(trajectory, self.rule)
        if self._is_as_sampled(trajectory) and self._is_young(candidate.policy_age):
            return trajectory
        return as_demonstration(trajectory, self.renderer, self.config.sampling)

    def _is_as_sampled(self, trajectory: Trajectory) -> bool:
        """Whether every token was sampled by a policy in the very context that is rendered here."""
        if not has_behaviour_logprobs(trajectory):
            return False
        if not keeps_tokens(trajectory, self.renderer):
            return False
        try:
            check_recorded(trajectory, self.vocabulary)
            samples = build_samples(
                trajectory,
                self.renderer,
                advantage=0.0,
                merge_size=self.renderer.merge,
                image_token_id=self.renderer.image_pad_id,
            )
            check_lengths(samples, self.config.sampling.max_context_tokens)
        except (Untrainable, ValueError):
            return False
        return True

    def _is_young(self, age: int | None) -> bool:
        """Whether a policy of this age may have an importance ratio. Raises NotRenderable: not used."""
        replay = self.config.replay
        if age is not None and age > replay.max_policy_age:
            message = f"its policy is {age} versions old, replay.max_policy_age is {replay.max_policy_age}"
            raise NotRenderable(SkipReason.TOO_OLD, message)
        if age is None and replay.unknown_policy_age == "skip":
            message = "its policy has no weights in common with this experiment's, so its age is unknown"
            raise NotRenderable(SkipReason.UNKNOWN_AGE, message)
        return age is not None or replay.unknown_policy_age == "reuse"
