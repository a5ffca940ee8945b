"""What the trainer hears of an entry's origin: whose turns, which tokens, how old its policy."""

import pytest

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_trajectory,
    make_user,
)
from testing.training.tiny_model import renderer
from training.batch.samples import build_samples, has_behaviour_logprobs
from training.contracts.config import SamplingConfig, parse_config
from training.contracts.context_fingerprint import shared_fingerprint
from training.contracts.coordinator import ReplayQuery
from training.contracts.types import Source
from training.render.demonstrations import as_demonstration
from training.rollouts.replay_admission import ReplayAdmission
from webapp.experiments.models import Attempt
from webapp.replay.services.process_labels import rate_turn
from webapp.worker_door.trainer_requests.contract import TrainerCall
from webapp.worker_door.trainer_requests.rollouts import get_replay

pytestmark = pytest.mark.django_db


def candidates(experiment, task):
    experiment.config |= {"tasks": {"task_set": task.task_set.name}}
    experiment.save(update_fields=["config"])
    attempt, _ = Attempt.objects.get_or_create(experiment=experiment, number=1)
    call = TrainerCall(Attempt.objects.get(pk=attempt.pk))
    return get_replay(call, ReplayQuery(task_id=task.task_id)).entries


def test_the_age_follows_the_weights_from_clone_to_clone():
    recording = make_experiment(policy_version=12)
    row = make_trajectory(group=make_group(experiment=recording), policy_version=5)
    make_replay_entry(trajectory=row, verdict="gold")
    clone = make_experiment(team=recording.team, policy_version=4, cloned_from=recording)
    stranger = make_experiment(team=recording.team, policy_version=4)
    ages = [candidates(one, row.task)[0].policy_age for one in (recording, clone, stranger)]
    assert ages == [12 - 5, 5 + 4, None]


def test_of_a_recorded_take_over_only_the_persons_turn_and_what_followed_are_learned():
    experiment = make_experiment()
    row = make_trajectory(group=make_group(experiment=experiment), turns=4, source=Source.HUMAN)
    reader = renderer()
    turns = list(row.turns.all())
    for turn, source in zip(turns, ("policy", "policy", "human", "policy"), strict=True):
        turn.source, turn.width, turn.height = source, 512, 384
        turn.completion = (
            turn.completion | {"fingerprint": reader.fingerprint} if source == "policy" else None
        )
    turns[1].action, turns[1].parse_error = None, "no action"
    for turn in turns:
        turn.save()
    make_replay_entry(trajectory=row, verdict="accepted")
    (candidate,) = candidates(experiment, row.task)
    assert candidate.policy_age is None, "a person's trajectory has no policy"
    assert shared_fingerprint(candidate.trajectory.turns) == reader.fingerprint
    shown = as_demonstration(candidate.trajectory, reader, SamplingConfig())
    assert [turn.is_context for turn in shown.turns] == [True, True, False, False]


def test_masks_of_single_turns_follow_the_entry_into_the_trainer():
    """A turn that people call bad keeps its place in the context and has no loss; the others keep theirs."""
    experiment = make_experiment()
    row = make_trajectory(group=make_group(experiment=experiment), turns=4)
    reader = renderer()
    for turn in row.turns.all():
        turn.width, turn.height = 512, 384
        turn.completion |= {"fingerprint": reader.fingerprint, "num_prompt_tokens": 0}
        turn.save()
    entry = make_replay_entry(trajectory=row, verdict="accepted", edit={"first": 1, "last": 2})
    user = make_user("annotator", team=experiment.team)
    rate_turn(trajectory=row, user=user, index=2, rating=-1)
    (candidate,) = candidates(experiment, row.task)
    assert candidate.trajectory.reward is not None
    config = parse_config(experiment.config)
    admission = ReplayAdmission(renderer=reader, config=config, vocabulary=len(reader.tokenizer))
    entered = admission.admit(candidate)
    assert admission.skips == []
    (sample,) = build_samples(
        entered.trajectory,
        reader,
        advantage=1.0,
        merge_size=reader.merge,
        image_token_id=reader.image_pad_id,
    )
    kept = [token for token, bit in zip(sample.token_ids, sample.loss_mask, strict=True) if bit]
    assert kept == [1, 2, 3], "the first is trimmed, the third bad, the last cut off"
    assert len(entered.trajectory.turns) == 3
    assert has_behaviour_logprobs(entered.trajectory), "what is left keeps its importance ratio"

    rate_turn(trajectory=row, user=user, index=1, rating=-1)
    (candidate,) = candidates(experiment, row.task)
    assert admission.admit(candidate) is None
    assert [(skip.entry_id, skip.reason) for skip in admission.skips] == [(entry.pk, "nothing_to_learn")]
