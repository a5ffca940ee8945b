"""Trajectories of First desk whose first turns are written for the policy, wrong ones among them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.kept_running import keep_running
from benchmarks.training.planted_policy import TOKEN, PlantedPolicy, Tokens
from training.contracts.config import ExperimentConfig
from training.contracts.types import Action, ActionKind, Purpose, Task
from training.planning.presets import load_preset

GARBAGE = '{"action":"terminate","statusss'
LIMIT_S = 3600.0


@dataclass(kw_only=True)
class Plant:
    """A trajectory with a wrong turn."""

    kind: str
    record: Any
    """Its TaskRecord."""
    turn: int
    """The wrong one, from 0; of a babble the first garbage."""
    written: list[Tokens]
    trajectory: Any = None
    true: dict[int, list[float]] = field(default_factory=dict)
    """State -> rewards of ordinary trajectories from there on."""


class Stage:
    """Experiments of one policy that nothing trains."""

    def __init__(self, policy: PlantedPolicy) -> None:
        self.policy = policy
        self.experiment = self._experiment("first-desk.v2")
        self.paid_by_state = self._experiment("first-desk.v1")
        keep_running((self.experiment.pk, self.paid_by_state.pk))

    def _experiment(self, rewards: str) -> Any:
        from django.utils import timezone

        from webapp.accounts.models import Team
        from webapp.experiments.models import Attempt, AttemptStatus, Experiment

        config = config_with(rewards)
        found = Experiment.objects.create(
            team=Team.objects.order_by("pk").first(),
            name="credit proof",
            config=config.model_dump(mode="json"),
            status="running",
            started_at=timezone.now(),
            heartbeat_at=timezone.now(),
        )
        running = {"status": AttemptStatus.RUNNING, "policy_url": self.policy.url, "policy_token": TOKEN}
        Attempt.objects.create(experiment=found, number=1, **running)
        return found

    def sample(self, record: Any, written: Sequence[Sequence[Tokens]], experiment: Any = None) -> Any:
        """Queue a group, one trajectory for each list of written completions."""
        from django.db import transaction

        from webapp.trajectories.services.groups import GroupSpec, create_group

        experiment = experiment or self.experiment
        request = GroupSpec(task=record, size=len(written), purpose=Purpose.TRAIN, temperature=1.0)
        with transaction.atomic():  # no worker sees it before its plans are made
            group = create_group(
                request=request, team_id=experiment.team_id, experiment=experiment, attempt=1
            )
            for member, completions in zip(group.trajectories.order_by("member"), written, strict=True):
                self.policy.plan(member.pk, completions)
        return group

    def wait(self, what: str) -> None:
        """Until everything that was queued has ended."""
        from webapp.trajectories.models import Group

        started, left = time.monotonic(), -1
        while (now := Group.objects.filter(finished_at=None).count()) > 0:
            if now != left:
                print(f"{what}: {now} groups left, {time.monotonic() - started:.0f} s", flush=True)
                left = now
            if time.monotonic() - started > LIMIT_S:
                raise TimeoutError(f"waited {LIMIT_S:.0f} s for {what}")
            self._check_attempts()
            time.sleep(2)

    def _check_attempts(self) -> None:
        """Raises RuntimeError when the product took the policy away."""
        from webapp.experiments.models import Attempt, AttemptStatus

        for attempt in Attempt.objects.exclude(status=AttemptStatus.RUNNING):
            row = attempt.experiment
            raise RuntimeError(f"attempt {attempt.status}: {attempt.reason}; {row.status}: {row.message}")

    def write(self, record: Any, actions: Iterable[Action]) -> list[Tokens]:
        """Completions of these actions, as the policy would write them."""
        renderer, screen = self.policy.renderer, Task.model_validate(record.spec).screen
        return [self.policy.tokens_of(renderer.action_text(action, screen)) for action in actions]


def config_with(rewards: str) -> ExperimentConfig:
    config = load_preset("first-desk").config
    # A second try of a place would have no plan.
    desktops = config.desktops.model_copy(update={"retries": 0})
    paid = config.rewards.model_copy(update={"preset": rewards})
    return config.model_copy(update={"desktops": desktops, "rewards": paid})


def oracle_actions(record: Any) -> list[Action]:
    return [Action.model_validate(action) for action in record.spec["oracle"]["actions"]]


def records(family: str, count: int) -> list[Any]:
    """Held-out tasks of a family, in order; of menus, those whose row has to be moved."""
    from webapp.experiments.models import TaskRecord

    rows = TaskRecord.objects.filter(task_set__name="first-desk", family=family, split="heldout")
    found = list(rows.order_by("task_id"))
    least = 3 if family == "menu" else 2
    return [row for row in found if len(oracle_actions(row)) >= least][:count]


def menu_plant(stage: Stage, record: Any) -> Plant:
    moves = oracle_actions(record)[:-2]
    (key,) = moves[-1].keys
    wrong = Action(kind=ActionKind.KEY, keys=(key,))
    written = stage.write(record, [*moves, wrong])
    return Plant(kind="menu", record=record, turn=len(moves), written=written)


def colour_plant(stage: Stage, record: Any) -> Plant:
    right = oracle_actions(record)[0]
    return Plant(
        kind="colour", record=record, turn=0, written=stage.write(record, [wrong_click(record, right)])
    )


def wrong_click(record: Any, right: Action) -> Action:
    others = [one for one in record.spec["oracle"]["widgets"] if (one["x"], one["y"]) != (right.x, right.y)]
    return Action(kind=ActionKind.CLICK, x=others[0]["x"], y=others[0]["y"])


def queue_babble(stage: Stage, record: Any) -> list[Plant]:
    """Of four members three click right and babble until the limit, one clicks wrong and ends."""
    right, done = oracle_actions(record)
    turns = Task.model_validate(record.spec).max_turns
    assert turns is not None
    garbage = stage.policy.tokens_of(GARBAGE)
    good = [*stage.write(record, [right]), *[garbage] * (turns - 1)]
    bad = stage.write(record, [wrong_click(record, right), done])
    group = stage.sample(record, [good, good, good, bad], stage.paid_by_state)
    babblers = group.trajectories.order_by("member")[:3]
    return [Plant(kind="babble", record=record, turn=1, written=good, trajectory=one) for one in babblers]


def queue_true(stage: Stage, plant: Plant, rollouts: int) -> dict[int, Any]:
    """State -> group of ordinary trajectories for which the turns before it are written."""
    turns = list(plant.trajectory.turns.order_by("index"))
    states = range(min(plant.turn + 2, len(turns)))
    own = [tuple(turn.completion["token_ids"]) for turn in turns]
    return {state: stage.sample(plant.record, [own[:state]] * rollouts) for state in states}


def queue_plants(stage: Stage, plants: Sequence[Plant]) -> None:
    """Queue plants, each with a sibling that the policy plays alone: values stand in groups."""
    for plant in plants:
        group = stage.sample(plant.record, [plant.written, []])
        plant.trajectory = group.trajectories.get(member=0)
