"""Jobs in LibreOffice Impress: slides and what stands on them."""

import random
from collections.abc import Sequence
from typing import Any

from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    TOPICS,
    click,
    json_holds,
    kind,
    word,
    words,
)
from training.content.task_sets.desk_office.odf_files import presentation
from training.content.task_sets.desk_office.writer import SAVE, document_at, name_of, open_document
from training.content.task_sets.steps_and_evaluators import DONE, press_keys, type_text
from training.content.task_sets.task_family import Problem, Split
from training.contracts.types import Action

PANE_X, PANE_TOP, PANE_STEP = 90, 190, 100
"""The pictures of the slides at the left."""
TITLE = (400, 345)
"""A point in the upper box of the slide that is shown."""


def slide_at(index: int) -> tuple[int, int]:
    return PANE_X, PANE_TOP + index * PANE_STEP


class _Talk:
    """Three slides of a split's words, open in Impress."""

    def __init__(self, rng: random.Random, split: Split) -> None:
        self.path = f"{HOME}/{word(rng, split, TOPICS)}.odp"
        cities, goods = words(rng, split, CITIES, 3), words(rng, split, GOODS, 3)
        self.slides = [
            (f"Visit to {city}", f"We sell {good} there.") for city, good in zip(cities, goods, strict=True)
        ]

    def problem(
        self, instruction: str, actions: tuple[Action, ...], slides: Sequence[tuple[str, ...]], *expected: Any
    ) -> Problem:
        """The texts of all slides must be these, besides what is expected."""
        texts: list[Any] = [(["slides", index, "texts"], list(slide)) for index, slide in enumerate(slides)]
        return Problem(
            instruction=f"{instruction} Then save {name_of(self.path)}.",
            config=open_document(self.path, presentation(self.slides)),
            evaluator=json_holds(document_at(self.path), (["num_slides"], len(slides)), *texts, *expected),
            actions=(*actions, SAVE, DONE),
        )


def delete(rng: random.Random, split: Split) -> Problem:
    talk, index = _Talk(rng, split), rng.randrange(3)
    return talk.problem(
        f'Delete the slide "{talk.slides[index][0]}".',
        (click(*slide_at(index)), press_keys("Delete")),
        [slide for number, slide in enumerate(talk.slides) if number != index],
    )


def add(rng: random.Random, split: Split) -> Problem:
    talk = _Talk(rng, split)
    return talk.problem(
        "Add an empty slide behind the last one.",
        (click(*slide_at(2)), press_keys("ctrl", "m")),
        [*talk.slides, ()],
    )


def repeat(rng: random.Random, split: Split) -> Problem:
    talk, index = _Talk(rng, split), rng.randrange(3)
    slides = list(talk.slides)
    slides.insert(index, slides[index])
    return talk.problem(
        f'Copy the slide "{talk.slides[index][0]}" and put the copy right behind it.',
        (click(*slide_at(index)), press_keys("ctrl", "c"), press_keys("ctrl", "v")),
        slides,
    )


def move(rng: random.Random, split: Split) -> Problem:
    talk = _Talk(rng, split)
    return talk.problem(
        "Move the first slide to the end.",
        (click(*slide_at(0)), press_keys("ctrl", "x"), click(*slide_at(1)), press_keys("ctrl", "v")),
        [*talk.slides[1:], talk.slides[0]],
    )


def _rewrite(index: int, place: tuple[int, int], text: str) -> tuple[Action, ...]:
    """Actions that replace the text of a box."""
    return (
        click(*slide_at(index)),
        click(*place),
        press_keys("F2"),
        press_keys("ctrl", "a"),
        type_text(text),
        press_keys("Escape"),
    )


def title(rng: random.Random, split: Split) -> Problem:
    talk, index, new = _Talk(rng, split), rng.randrange(3), f"Farewell to {word(rng, split, CITIES)}"
    slides = list(talk.slides)
    slides[index] = (new, slides[index][1])
    return talk.problem(
        f'Change the title of slide {index + 1} to "{new}".', _rewrite(index, TITLE, new), slides
    )


KINDS = (
    kind("impress/delete", 2, delete),
    kind("impress/add", 2, add),
    kind("impress/repeat", 2, repeat),
    kind("impress/move", 2, move),
    kind("impress/title", 3, title),
)
