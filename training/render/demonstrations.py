"""Recorded trajectories as demonstrations for one renderer: imitated as likelihood, without importance ratio.

Recorded token ids are kept when they mean here what they meant when they were sampled (equal fingerprints);
otherwise every turn is written again from its typed action, in the renderer's dialect and coordinate space.
"""

from training.actions.several_actions import turn_text
from training.contracts.config import SamplingConfig
from training.contracts.context_fingerprint import differences, shared_fingerprint
from training.contracts.imitated_turns import context_turns
from training.contracts.outcome import SuccessRule, is_counted
from training.contracts.trainer_reports import SkipReason
from training.contracts.types import Completion, Trajectory, Turn
from training.observations.turn_text import unmarked
from training.render.renderer import Renderer
from training.render.token_budgets import over_budget


class NotRenderable(Exception):
    """Raised for a trajectory that cannot be a demonstration; the message is a whole phrase."""

    def __init__(self, reason: SkipReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def check_end(trajectory: Trajectory, rule: SuccessRule) -> None:
    """Raises NotRenderable for what would teach to go on until a limit, where `rule` does not count it."""
    if not is_counted(trajectory.status, rule):
        message = "a limit ended it, and this experiment learns only from what the agent ended"
        raise NotRenderable(SkipReason.AT_LIMIT, message)


def keeps_tokens(trajectory: Trajectory, renderer: Renderer) -> bool:
    """Whether its recorded token ids stand for the same text, in the same context, for this renderer."""
    if differences(shared_fingerprint(trajectory.turns), renderer.fingerprint):
        return False
    size = len(renderer.tokenizer)
    completions = [turn.completion for turn in trajectory.turns if turn.completion is not None]
    return all(0 <= token < size for completion in completions for token in completion.token_ids)


def as_demonstration(trajectory: Trajectory, renderer: Renderer, limits: SamplingConfig) -> Trajectory:
    """`trajectory` as this renderer's policy would have done it; what is not imitated is marked as context.

    Raises NotRenderable.
    """
    keeps = keeps_tokens(trajectory, renderer)
    is_context = context_turns(trajectory.turns)
    if all(is_context):
        raise NotRenderable(SkipReason.NOTHING_TO_LEARN, "none of its turns is to be imitated")
    turns = []
    for turn, only_context in zip(trajectory.turns, is_context, strict=True):
        completion = _completion(turn, trajectory, renderer, keeps=keeps, only_context=only_context)
        changes = {"completion": completion, "is_context": only_context}
        observation = unmarked(turn.observation, renderer.prompt)
        turns.append(turn.model_copy(update={**changes, "observation": observation}))
    demonstration = trajectory.model_copy(update={"turns": tuple(turns)})
    _check_length(demonstration, renderer, limits)
    return demonstration


def _completion(
    turn: Turn, trajectory: Trajectory, renderer: Renderer, *, keeps: bool, only_context: bool
) -> Completion:
    recorded = turn.completion
    if recorded is not None and recorded.token_ids and keeps:
        return recorded.model_copy(update={"behaviour_logprobs": ()})
    if turn.action is None:
        if recorded is not None and recorded.text and only_context:
            return Completion(text=recorded.text)
        raise NotRenderable(SkipReason.NO_ACTION, f"turn {turn.index + 1} has no typed action")
    observation = turn.observation
    screen = (observation.width, observation.height) if observation.width else trajectory.task.screen
    try:
        return Completion(text=turn_text(renderer, turn, screen))
    except ValueError as error:
        message = f"turn {turn.index + 1} cannot be written: {error}"
        raise NotRenderable(SkipReason.NOT_WRITABLE, message) from error


def _check_length(trajectory: Trajectory, renderer: Renderer, limits: SamplingConfig) -> None:
    for sequence in renderer.render_sequences(trajectory):
        images = sequence.token_ids.count(renderer.image_pad_id)
        over = over_budget(images, len(sequence.token_ids) - images, limits)
        if over is not None:
            raise NotRenderable(SkipReason.TOO_LONG, over)
