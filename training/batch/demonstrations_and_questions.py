"""The data of SFT: batches of demonstrations, and of questions about their screenshots.

Two fifths of every batch are whole demonstrations, rendered exactly like sampled trajectories. The others
are first screenshots with several *questions* packed on each, because from random weights where to look
is learned far slower than what to write:

- locator questions: the name of a widget, answered at once by its coordinate;
- other instructions: what else one could be asked on this very screen, with the first action it takes.
  They come from the other widgets that the oracle knows and the texts that other demonstrations type.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from training.batch.samples import Sample
from training.batch.screenshot_questions import (
    Question,
    instruction_questions,
    locator_questions,
    typed_text,
)
from training.contracts.types import Trajectory
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.render.shift_augmentation import is_shiftable, random_shift, shifted

PACKED_SHARE = 0.6
"""Of the sequences of a batch."""


@dataclass(kw_only=True, slots=True)
class SftDataset:
    """Demonstrations by family, chosen at random and rendered when chosen."""

    renderer: Renderer
    num_questions: int
    """Packed on one screenshot at most; 0 = demonstrations only."""
    max_tokens: float
    """Of a sequence (`sampling.max_context_tokens`): questions beyond it are left out."""
    demonstrations: dict[str, list[Trajectory]] = field(default_factory=dict)
    """Family -> demonstrations with at least one turn."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Family -> what its demonstrations type first."""

    @classmethod
    def from_trajectories(
        cls,
        trajectories: Iterable[Trajectory],
        renderer: Renderer,
        *,
        locator_questions: int = 10,
        max_tokens: float = math.inf,
    ) -> SftDataset:
        """Data from finished oracle trajectories. Raises ValueError when there are none."""
        dataset = cls(renderer=renderer, num_questions=locator_questions, max_tokens=max_tokens)
        for trajectory in trajectories:
            if not trajectory.turns:
                continue
            family = trajectory.task.family
            dataset.demonstrations.setdefault(family, []).append(trajectory)
            if text := typed_text(trajectory):
                dataset.texts.setdefault(family, []).append(text)
        if not dataset.demonstrations:
            raise ValueError(
                "no demonstrations: record oracle trajectories of the task set's train split first"
            )
        return dataset

    def batch(self, size: int, rng: random.Random) -> list[list[RenderedSequence]]:
        """Microbatches of one step: whole demonstrations first, then packed questions.

        Families have equal shares of the demonstrations; every screenshot of the questions.
        The two are kept apart because their lengths differ, so that padding stays small.
        """
        everything = [one for family in sorted(self.demonstrations) for one in self.demonstrations[family]]
        asks = self.num_questions > 0 and self.renderer.prompt.shows_screen
        num_packed = round(size * PACKED_SHARE) if asks else 0
        families = sorted(self.demonstrations)
        whole = [
            sequence
            for _ in range(size - num_packed)
            for sequence in self.renderer.render_sequences(
                self._moved(rng.choice(self.demonstrations[rng.choice(families)]), rng)
            )
            if any(sequence.loss_mask)
        ]
        packed = [self._packed(self._moved(rng.choice(everything), rng), rng) for _ in range(num_packed)]
        packed = [sequence for sequence in packed if any(sequence.loss_mask)]
        return [part for part in (whole, packed) if part]

    def _moved(self, trajectory: Trajectory, rng: random.Random) -> Trajectory:
        """A keyboard demonstration somewhere else on the screen; any other as it is."""
        if not self.renderer.prompt.shows_screen or not is_shiftable(trajectory):
            return trajectory
        image = self.renderer.resized_size(trajectory.task.screen)
        return shifted(trajectory, random_shift(trajectory, image, rng), image)

    def _packed(self, trajectory: Trajectory, rng: random.Random) -> RenderedSequence:
        """The first screenshot with up to `num_questions` questions, half of them locators."""
        texts = self.texts.get(trajectory.task.family, [])
        others = rng.sample(texts, min(self.num_questions, len(texts)))
        locators = locator_questions(trajectory, self.renderer.prompt.permille_grid)
        instructions = instruction_questions(trajectory, self.renderer.action_text, others)
        asked = rng.sample(locators, min(self.num_questions // 2, len(locators)))
        asked += rng.sample(instructions, min(self.num_questions - len(asked), len(instructions)))
        rng.shuffle(asked)
        return pack_questions(self.renderer, trajectory, asked, self.max_tokens)


def pack_questions(
    renderer: Renderer,
    trajectory: Trajectory,
    questions: list[Question],
    max_tokens: float = math.inf,
) -> RenderedSequence:
    """A demonstration's first screenshot and the questions about it that fit, as one sequence."""
    first = trajectory.turns[0].observation
    size = (first.width, first.height) if first.sha256 and renderer.prompt.shows_screen else None
    rendered = RenderedSequence()
    if size:
        rendered.images.append(first.sha256)
        rendered.grids.append(renderer.image_grid(size))
    for question in questions:
        is_first = not rendered.token_ids
        prompt = (
            renderer.render_turn(0, question.text, size) if is_first else renderer.question(question.text)
        )
        answer = renderer.completion_ids(question.answer)
        if len(rendered.token_ids) + len(prompt) + len(answer) <= max_tokens:
            rendered.append_prompt(prompt)
            rendered.append_completion(answer, [float("nan")] * len(answer), -1)
    return rendered


def sft_sample(rendered: RenderedSequence, number: int) -> Sample:
    """A rendered demonstration as a sample of the likelihood loss; `number` stands for its trajectory."""
    return Sample(
        trajectory_id=number,
        group_id=0,
        token_ids=tuple(rendered.token_ids),
        loss_mask=tuple(rendered.loss_mask),
        behaviour_logprobs=(0.0,) * len(rendered.token_ids),
        policy_versions=tuple(rendered.policy_versions),
        images=tuple(rendered.images),
        grids=tuple(rendered.grids),
        as_likelihood=True,
    )
