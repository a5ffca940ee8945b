"""The policy's own turns are counted by themselves: a person may have taken turns between them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from testing.workers.served_completions import served_completions
from training.contracts.config import ExperimentConfig
from training.contracts.types import Completion, Observation, Source, Task
from webapp.worker_door.assignments import Assignment
from workers.env.actors import PolicyActor

ANSWER = Completion(text='{"action":"key","keys":["Return"]}', token_ids=(1,), behaviour_logprobs=(-0.1,))


@pytest.fixture
def policy() -> Iterator[tuple[str, list[int]]]:
    """(URL, the turn numbers that it was asked for) of a policy server that always presses Return."""
    asked: list[int] = []

    def complete(request: dict[str, Any]) -> Completion:
        asked.append(request["turn_index"])
        return ANSWER

    with served_completions(complete) as (url, _):
        yield url, asked


def test_the_policy_is_asked_for_its_next_turn_whatever_a_person_did_between(policy):
    url, asked = policy
    assignment = Assignment(
        row=SimpleNamespace(pk=5),
        task=Task(task_id="t", instruction="i"),
        config=ExperimentConfig.model_validate({"prompt": {"observation": []}}),
        source=Source.POLICY,
        temperature=1.0,
        policy_url=url,
        policy_token="token",
    )
    actor = PolicyActor(assignment)
    seen = Observation(sha256="", width=512, height=384, text="i")
    for index in (0, 1, 6):  # the record has a person's turns 2 to 5
        assert actor.decide(index, b"", seen, []).actions
    actor.close()
    assert asked == [0, 1, 2]
