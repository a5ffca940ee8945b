"""What a start must show on screens it never saw before it is worth shipping; a start that fails is remade
from another seed.

A trajectory counts as right when the completion of every turn does what the oracle did on its screens. What
counts for the product is measured on desktops, by `benchmarks/training/first_desk.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from training.actions.parse_completion import parse_completion
from training.batch.screenshot_cache import ScreenshotCache
from training.batch.screenshot_questions import locator_questions
from training.content.recipes.first_desk.habits import BUTTON_REACH
from training.contracts.types import Trajectory, Turn
from training.render.renderer import Renderer
from training.sampler.engine import EngineSequence, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine

MAX_TOKENS = 40
EVALUATION_BATCH = 96
MIN_LOCATED, MIN_ON_A_BUTTON, MIN_NAMED = 0.98, 0.95, 0.30


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFigures:
    """Shares on held-out screens."""

    greedy: dict[str, float] = field(default_factory=dict)
    """Family -> oracle trajectories that the policy would have gone alike."""
    sampled: dict[str, float] = field(default_factory=dict)
    located: float = 0.0
    """Buttons that the answer to "where is it" hits, greedily."""
    on_a_button: float = 0.0
    """First clicks of colour that hit any button, greedily."""

    def passes(self) -> bool:
        """Whether GRPO can learn from it: it points well, and in a minority does what is asked."""
        points = self.located >= MIN_LOCATED and self.on_a_button >= MIN_ON_A_BUTTON
        return points and self.sampled["colour"] >= MIN_NAMED


def look_at(
    engine: TransformersEngine, pixels: ScreenshotCache, heldout: Sequence[Trajectory]
) -> StartFigures:
    """The figures of the engine's policy on oracle trajectories of held-out tasks."""
    colour = [one for one in heldout if one.task.family == "colour"]
    return StartFigures(
        greedy=right_trajectories(engine, pixels, heldout, 0.0),
        sampled=right_trajectories(engine, pixels, heldout, 1.0),
        located=located(engine, pixels, colour),
        on_a_button=on_a_button(engine, pixels, colour),
    )


def right_trajectories(
    engine: TransformersEngine,
    pixels: ScreenshotCache,
    trajectories: Sequence[Trajectory],
    temperature: float,
) -> dict[str, float]:
    """Family -> share of oracle trajectories whose every turn the policy would have done alike."""
    renderer, turns, sequences = engine.renderer, [], []
    for number, trajectory in enumerate(trajectories):
        rendered = renderer.render_trajectory(trajectory)
        for turn, (start, _) in zip(trajectory.turns, rendered.spans, strict=True):
            turns.append((number, turn))
            sequences.append(
                EngineSequence(
                    sequence_id=f"{number}",
                    token_ids=rendered.token_ids[:start],
                    pixels=[pixels(name) for name in rendered.images[: turn.index + 1]],
                    grids=rendered.grids[: turn.index + 1],
                )
            )
    good = [True] * len(trajectories)
    for (number, turn), text in zip(turns, _complete(engine, sequences, temperature), strict=True):
        good[number] &= does_the_same(text, turn, trajectories[number], renderer)
    families: dict[str, list[bool]] = {}
    for trajectory, success in zip(trajectories, good, strict=True):
        families.setdefault(trajectory.task.family, []).append(success)
    return {family: sum(values) / len(values) for family, values in sorted(families.items())}


def does_the_same(text: str, turn: Turn, trajectory: Trajectory, renderer: Renderer) -> bool:
    """True when `text` does what the oracle did; a click may be anywhere on the same button."""
    assert turn.action is not None, "an oracle acts in every turn"
    screen = trajectory.task.screen
    if turn.action.x is None or turn.action.y is None:
        return text == renderer.action_text(turn.action, screen)
    action = parse_completion(text, screen=screen).action
    if action is None or action.kind is not turn.action.kind or action.x is None or action.y is None:
        return False
    return _reaches((action.x, action.y), (turn.action.x, turn.action.y))


def located(engine: TransformersEngine, pixels: ScreenshotCache, trajectories: Sequence[Trajectory]) -> float:
    """Share of the locator questions that are answered by a point on the button."""
    renderer, sequences, wanted = engine.renderer, [], []
    for trajectory in trajectories:
        grid = renderer.prompt.permille_grid
        for question, widget in zip(
            locator_questions(trajectory, grid), trajectory.task.oracle["widgets"], strict=True
        ):
            sequences.append(_first_screen(engine, pixels, trajectory, question.text))
            wanted.append((trajectory.task.screen, widget))
    hits = 0
    for text, ((width, height), widget) in zip(_complete(engine, sequences, 0.0), wanted, strict=True):
        parts = text.split(",")
        if len(parts) == 2 and all(part.isdigit() for part in parts):
            point = (int(parts[0]) * width // 1000, int(parts[1]) * height // 1000)
            hits += _reaches(point, (widget["x"], widget["y"]))
    return hits / len(wanted)


def on_a_button(
    engine: TransformersEngine, pixels: ScreenshotCache, trajectories: Sequence[Trajectory]
) -> float:
    """Share of first completions that click some button."""
    sequences = [_first_screen(engine, pixels, one, one.task.instruction) for one in trajectories]
    hits = 0
    for text, trajectory in zip(_complete(engine, sequences, 0.0), trajectories, strict=True):
        action = parse_completion(text, screen=trajectory.task.screen).action
        if action is not None and action.x is not None and action.y is not None:
            point = (action.x, action.y)
            hits += any(
                _reaches(point, (widget["x"], widget["y"])) for widget in trajectory.task.oracle["widgets"]
            )
    return hits / len(trajectories)


def _first_screen(
    engine: TransformersEngine, pixels: ScreenshotCache, trajectory: Trajectory, text: str
) -> EngineSequence:
    first = trajectory.turns[0].observation
    size = (first.width, first.height)
    return EngineSequence(
        sequence_id=first.sha256,
        token_ids=engine.renderer.render_turn(0, text, size, instruction=text),
        pixels=[pixels(first.sha256)],
        grids=[engine.renderer.image_grid(size)],
    )


def _complete(
    engine: TransformersEngine, sequences: Sequence[EngineSequence], temperature: float
) -> list[str]:
    sampling, texts = SamplingSettings(temperature=temperature, max_tokens=MAX_TOKENS), []
    for first in range(0, len(sequences), EVALUATION_BATCH):
        part = list(sequences[first : first + EVALUATION_BATCH])
        found = engine.generate(part, [sampling] * len(part))
        texts += [engine.renderer.decode(one.token_ids) for one in found]
    return texts


def _reaches(point: tuple[int, int], centre: tuple[int, int]) -> bool:
    """Whether a point lies on the smallest button around `centre`."""
    return all(abs(a - b) <= reach for a, b, reach in zip(point, centre, BUTTON_REACH, strict=True))
