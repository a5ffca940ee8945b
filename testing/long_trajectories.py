"""Trajectories of hundreds of turns, made in one insert."""

from django.utils import timezone

from testing.factories import SCREEN, make_frame
from webapp.trajectories.models import Trajectory, TurnRecord

NUM_FRAMES = 40


def make_long_turns(
    trajectory: Trajectory, num_turns: int, *, num_tokens: int = 150, num_characters: int = 600
) -> None:
    """Give an empty trajectory `num_turns` turns, each with a completion of this length."""
    frames = [make_frame(trajectory.team, number) for number in range(min(NUM_FRAMES, num_turns))]
    words = "the text of a turn "
    text = (words * (num_characters // len(words) + 1))[: num_characters - 13] + "the last word"
    completion = {
        "text": text,
        "token_ids": list(range(num_tokens)),
        "token_texts": ["tok "] * num_tokens,
        "behaviour_logprobs": [-0.1 * (place % 50) for place in range(num_tokens)],
        "policy_version": 0,
        "finish_reason": "stop",
        "num_prompt_tokens": 10,
    }
    now = timezone.now()
    TurnRecord.objects.bulk_create(
        TurnRecord(
            trajectory=trajectory,
            index=index,
            frame=frames[index % len(frames)],
            width=SCREEN[0],
            height=SCREEN[1],
            completion=completion,
            thought=f"thought {index + 1}",
            action={"kind": "click", "x": 20 + index % 450, "y": 40 + (trajectory.member * index) % 300},
            dialect="json",
            observed_at=now,
            completed_at=now,
            acted_at=now,
        )
        for index in range(num_turns)
    )
    last = frames[(num_turns - 1) % len(frames)]
    Trajectory.objects.filter(pk=trajectory.pk).update(num_turns=num_turns, last_frame=last, thumbnail=last)
