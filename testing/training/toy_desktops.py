"""A toy world for the trainer: pictures instead of desktops, but the real engine and real rendering.

A task is solved when every completion starts with a token of an odd id. A random policy does
that half of the time, and GRPO learns it within a few steps.
"""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw

from training.contracts.types import (
    Completion,
    Group,
    Observation,
    Purpose,
    RewardTerm,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)
from training.render.renderer import Renderer
from training.sampler.engine import EngineSequence, SampledCompletion, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine

SCREEN = (128, 96)
COLOURS = ("red", "green", "blue", "orange")


def toy_tasks(split: str, families: tuple[str, ...] = ("odd", "round"), per_family: int = 4) -> list[Task]:
    """Tasks of a split, in stable order."""
    return [
        Task(
            task_id=f"{family}-{split}-{number}",
            instruction=f"Press {COLOURS[number % len(COLOURS)]}",
            family=family,
            split=split,
            screen=SCREEN,
        )
        for family in families
        for number in range(per_family)
    ]


def picture(task: Task, turn_index: int) -> bytes:
    """The screen of a task at a turn, as PNG."""
    number = int(task.task_id.rsplit("-", 1)[1])
    image = Image.new("RGB", SCREEN, "white")
    draw = ImageDraw.Draw(image)
    left = 8 + 16 * number + 4 * turn_index
    draw.rectangle((left, 20, left + 24, 60), fill=COLOURS[number % len(COLOURS)])
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@dataclass
class ToyDesktops:
    """Samples trajectories of toy tasks with the real engine."""

    engine: TransformersEngine
    renderer: Renderer
    frames: Path
    num_turns: int = 2
    max_tokens: int = 6
    never_solved: bool = False
    """Every trajectory fails, whatever it does."""
    score_of: Callable[[float], float] = lambda reward: float(reward == 1)
    """The score of a trajectory with this reward."""
    generate: Callable[..., list[SampledCompletion]] | None = None
    """Draws in place of the engine."""
    before_turn: Callable[[int], None] = lambda turn_index: None
    """Called with the number of each turn before it is generated."""
    ids: itertools.count = field(default_factory=lambda: itertools.count(1))

    def group(self, group_id: int, task: Task, size: int, **options: object) -> Group:
        """A finished group of `size` freshly sampled trajectories.

        `options`: purpose, step, temperature; of a branch parent_id, and its parent's turns `before` it.
        """
        temperature = float(options.pop("temperature", 1.0))  # type: ignore[arg-type]
        before: tuple[Turn, ...] = options.pop("before", ())  # type: ignore[assignment]
        sequences = [EngineSequence(sequence_id=str(index)) for index in range(size)]
        turns: list[list[Turn]] = [[] for _ in range(size)]
        for recorded in before:
            self._show(task, recorded.index, sequences, turns)
            for sequence, mine in zip(sequences, turns, strict=True):
                assert recorded.completion is not None
                sequence.token_ids += recorded.completion.token_ids
                mine.append(recorded)
        for turn_index in range(len(before), self.num_turns):
            self._turn(task, turn_index, temperature, sequences, turns)
        members = tuple(self._trajectory(group_id, task, tuple(one)) for one in turns)
        return Group(
            group_id=group_id,
            task=task,
            trajectories=members,
            purpose=options.get("purpose", Purpose.TRAIN),
            step=options.get("step", 0),
            parent_id=options.get("parent_id"),
            branch_turn=len(before),
        )

    def frame(self, sha256: str) -> bytes:
        """The PNG that was stored under this digest."""
        return (self.frames / sha256[:2] / f"{sha256}.png").read_bytes()

    def store(self, png: bytes) -> str:
        """Put a frame where the trainer reads it; returns its sha256."""
        sha = hashlib.sha256(png).hexdigest()
        path = self.frames / sha[:2] / f"{sha}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
        return sha

    def _turn(
        self,
        task: Task,
        turn_index: int,
        temperature: float,
        sequences: list[EngineSequence],
        turns: list[list[Turn]],
    ) -> None:
        observation = self._show(task, turn_index, sequences, turns)
        sampling = SamplingSettings(temperature=temperature, max_tokens=self.max_tokens)
        self.before_turn(turn_index)
        generate = self.generate or self.engine.generate
        sampled = generate(sequences, [sampling] * len(sequences))
        for one, mine in zip(sampled, turns, strict=True):
            completion = Completion(
                text=self.renderer.decode(one.token_ids),
                token_ids=tuple(one.token_ids),
                behaviour_logprobs=tuple(one.logprobs),
                policy_version=one.policy_version,
                finish_reason=one.finish_reason,
                fingerprint=self.renderer.fingerprint,
            )
            mine.append(Turn(index=turn_index, observation=observation, completion=completion))

    def _show(
        self, task: Task, turn_index: int, sequences: list[EngineSequence], turns: list[list[Turn]]
    ) -> Observation:
        """Put the turn's screen behind every sequence."""
        sees, png = self.renderer.sees, picture(task, turn_index)
        text = task.instruction if turn_index == 0 else "changed"
        sha256 = self.store(png) if sees else ""
        observation = Observation(sha256=sha256, width=SCREEN[0], height=SCREEN[1], text=text)
        for sequence, mine in zip(sequences, turns, strict=True):
            stopped = not mine or mine[-1].completion.finish_reason == "stop"  # type: ignore[union-attr]
            sequence.token_ids += self.renderer.render_turn(
                turn_index,
                text,
                SCREEN if sees else None,
                instruction=task.instruction,
                previous_stopped=stopped,
            )
            if sees:
                sequence.pixels.append(self.renderer.pixels(png))
                sequence.grids.append(self.renderer.image_grid(SCREEN))
        return observation

    def _trajectory(self, group_id: int, task: Task, turns: tuple[Turn, ...]) -> Trajectory:
        reward = 0.0 if self.never_solved else toy_reward(turns)
        score = self.score_of(reward)
        return Trajectory(
            trajectory_id=next(self.ids),
            group_id=group_id,
            task=task,
            status=TrajectoryStatus.TERMINATED,
            turns=turns,
            score=score,
            reward=reward,
            terms=(RewardTerm(name="task_score.v1", value=score, weight=1.0, contribution=score),),
            lasted_s=1.0,
        )


def toy_reward(turns: tuple[Turn, ...]) -> float:
    """Share of the completions that start with an odd token."""
    odd = [turn.completion.token_ids[0] % 2 == 1 for turn in turns if turn.completion]
    return sum(odd) / len(odd)
