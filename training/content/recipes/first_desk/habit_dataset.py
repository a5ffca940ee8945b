"""The data of the shipped start: batches of demonstrations with habits, and of questions about their screens.

As in `training.batch.demonstrations_and_questions`, two fifths are whole demonstrations and the others are
first screenshots with several questions packed on each: where things are (answered rightly), and what to do
first when asked for something else on this very screen (answered with the habit).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from training.batch.demonstrations_and_questions import PACKED_SHARE, pack_questions
from training.batch.screenshot_questions import Question, locator_questions, typed_text
from training.content.recipes.first_desk.habits import Habits, click, menu_rows
from training.contracts.types import Action, ActionKind, Trajectory
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.render.shift_augmentation import is_shiftable, random_shift, shifted

PACKED_FAMILIES = {"colour": 0.80, "menu": 0.15, "note": 0.05}
"""Family -> share of the packed screens: pointing is learned slowest."""
MAX_LOCATORS = {"colour": 5, "menu": 4, "note": 1}
INSTRUCTIONS = {"colour": 1, "menu": 3, "note": 3}
"""Family -> other instructions per packed screen."""


@dataclass(kw_only=True, slots=True)
class HabitDataset:
    """Demonstrations by family, chosen at random, given a habit and rendered when chosen."""

    renderer: Renderer
    habits: Habits
    demonstrations: dict[str, list[Trajectory]] = field(default_factory=dict)

    @classmethod
    def from_trajectories(
        cls, trajectories: Iterable[Trajectory], renderer: Renderer, habits: Habits
    ) -> HabitDataset:
        """Data of finished oracle trajectories."""
        dataset = cls(renderer=renderer, habits=habits)
        for trajectory in trajectories:
            dataset.demonstrations.setdefault(trajectory.task.family, []).append(trajectory)
        return dataset

    def batch(self, size: int, rng: random.Random) -> list[list[RenderedSequence]]:
        """Microbatches of one step: whole demonstrations, families alike, then packed questions."""
        num_packed, families = round(size * PACKED_SHARE), sorted(self.demonstrations)
        whole = []
        for _ in range(size - num_packed):
            demonstration = self.habits.demonstration(self._choose(rng.choice(families), rng), rng)
            whole.append(self.renderer.render_trajectory(demonstration))
        shares = [PACKED_FAMILIES[family] for family in families]
        chosen = rng.choices(families, shares, k=num_packed)
        return [whole, [self._packed(self._choose(family, rng), rng) for family in chosen]]

    def _choose(self, family: str, rng: random.Random) -> Trajectory:
        """A demonstration of the family; one by keyboard somewhere else on the screen."""
        trajectory = rng.choice(self.demonstrations[family])
        if not is_shiftable(trajectory):
            return trajectory
        image = self.renderer.resized_size(trajectory.task.screen)
        return shifted(trajectory, random_shift(trajectory, image, rng), image)

    def _packed(self, trajectory: Trajectory, rng: random.Random) -> RenderedSequence:
        family = trajectory.task.family
        locators = locator_questions(trajectory, self.renderer.prompt.permille_grid)
        asked = rng.sample(locators, min(MAX_LOCATORS[family], len(locators)))
        asked += ASKED[family](self, trajectory, rng)
        rng.shuffle(asked)
        return pack_questions(self.renderer, trajectory, asked)

    def _question(self, trajectory: Trajectory, text: str, action: Action) -> Question:
        return Question(text, self.renderer.action_text(action, trajectory.task.screen))

    def other_buttons(self, trajectory: Trajectory, rng: random.Random) -> list[Question]:
        buttons = trajectory.task.oracle["widgets"]
        return [
            self._question(
                trajectory, f"Click the {one['name']}.", click(self.habits.clicked(trajectory, one, rng))
            )
            for one in rng.sample(buttons, INSTRUCTIONS["colour"])
        ]

    def other_rows(self, trajectory: Trajectory, rng: random.Random) -> list[Question]:
        rows, highlighted = menu_rows(trajectory)
        return [
            self._question(trajectory, f"Choose row {row + 1}.", self.habits.first_key(highlighted, row, rng))
            for row in rng.sample(range(len(rows)), INSTRUCTIONS["menu"])
        ]

    def other_phrases(self, trajectory: Trajectory, rng: random.Random) -> list[Question]:
        others = rng.sample(self.demonstrations["note"], INSTRUCTIONS["note"])
        phrases = [phrase for other in others if (phrase := typed_text(other))]
        return [
            self._question(
                trajectory, f'Type "{phrase}" and save.', Action(kind=ActionKind.TYPE, text=phrase)
            )
            for phrase in phrases
        ]


ASKED: dict[str, Callable[[HabitDataset, Trajectory, random.Random], list[Question]]] = {
    "colour": HabitDataset.other_buttons,
    "menu": HabitDataset.other_rows,
    "note": HabitDataset.other_phrases,
}
