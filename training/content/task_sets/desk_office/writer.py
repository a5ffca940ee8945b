"""Jobs in LibreOffice Writer: paragraphs, faces, styles, words, tables, pages and copies as PDF."""

import random
from typing import Any

from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    PEOPLE,
    REST,
    TOPICS,
    click,
    command_says,
    json_holds,
    kind,
    upload,
    wait_for_window,
    word,
    words,
)
from training.content.task_sets.desk_office.odf_files import text_document
from training.content.task_sets.steps_and_evaluators import DONE, press_keys, setup_step, type_text
from training.content.task_sets.task_family import Problem, Split
from training.contracts.types import Action

SAVE, ENTER = press_keys("ctrl", "s"), press_keys("Return")
START, END = press_keys("ctrl", "Home"), press_keys("ctrl", "End")
PDF = (160, 64)
"""Export directly as PDF, in the toolbar."""
OFFICE = ("soffice", "--norestore", "--nologo")


BLANK = {".odt": (300, 600), ".ods": (490, 600), ".odp": (250, 530)}
"""A point that is white as soon as the document is drawn."""
TOOLBAR = (600, 116)
"""A point of the document until the toolbars push it down; before that LibreOffice takes no keys in turn."""


def open_document(path: str, base64: str) -> tuple[dict[str, Any], ...]:
    """Set-up steps: LibreOffice on this document."""
    x, y = BLANK[path[-4:]]
    return (
        upload(path, base64),
        setup_step("launch", command=[*OFFICE, path]),
        *wait_for_window(name_of(path)),
        setup_step("wait_color", x=x, y=y, color="#ffffff"),
        setup_step("wait_color", x=TOOLBAR[0], y=TOOLBAR[1], color="#f6f5f4"),
    )


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def document_at(path: str) -> dict[str, Any]:
    """The getter of a saved document."""
    return {"type": "office_document", "path": path}


class _Letter:
    """A short letter of a split's words, open in Writer."""

    def __init__(self, rng: random.Random, split: Split) -> None:
        self.path = f"{HOME}/{word(rng, split, TOPICS)}.odt"
        self.city, self.new_city = words(rng, split, CITIES, 2)
        self.person = word(rng, split, PEOPLE)
        goods = words(rng, split, GOODS, 3)
        self.lines = [
            f"Delivery to {self.city}",
            f"{self.person} ordered {rng.randint(2, 40)} {goods[0]} from {self.city}.",
            f"The {goods[1]} and the {goods[2]} follow next week.",
            f"Our office in {self.city} sends the bill.",
        ]
        self.config = open_document(self.path, text_document(self.lines))

    def problem(
        self, instruction: str, actions: tuple[Action, ...], *expected: Any, lines: Any = None
    ) -> Problem:
        """All texts must be `lines` (those at first), besides what is expected."""
        texts = self.lines if lines is None else lines
        is_text: list[Any] = [(["paragraphs", index, "text"], text) for index, text in enumerate(texts)]
        if lines is not None:
            is_text.append((["num_paragraphs"], len(lines)))
        return Problem(
            instruction=f"{instruction} Then save {name_of(self.path)}.",
            config=self.config,
            evaluator=json_holds(document_at(self.path), *is_text, *expected),
            actions=(*actions, SAVE, DONE),
        )


def append(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    line = f"Please call {word(rng, split, PEOPLE)}."
    return letter.problem(
        f'Add a new paragraph "{line}" at the end.',
        (END, type_text("\n" + line)),
        lines=[*letter.lines, line],
    )


def title_face(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    word_of, key, face = rng.choice(
        [("bold", "b", "bold"), ("italic", "i", "italic"), ("underlined", "u", "underline")]
    )
    return letter.problem(
        f"Make the whole first line {word_of}.",
        (START, press_keys("shift", "End"), press_keys("ctrl", key)),
        (["paragraphs", 0, face], True),
        (["paragraphs", 1, face], False),
    )


def heading(rng: random.Random, split: Split) -> Problem:
    letter, level = _Letter(rng, split), rng.choice((1, 2, 3))
    return letter.problem(
        f'Give the first line the style "Heading {level}".',
        (START, press_keys("ctrl", str(level))),
        (["paragraphs", 0, "style"], f"Heading {level}"),
    )


def align(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    where, key, value = rng.choice([("Centre", "e", "center"), ("Right-align", "r", "end")])
    return letter.problem(
        f"{where} the first line.",
        (START, press_keys("ctrl", key)),
        (["paragraphs", 0, "align"], value),
        (["paragraphs", 1, "align"], "start"),
    )


def delete_paragraph(rng: random.Random, split: Split) -> Problem:
    letter, index = _Letter(rng, split), rng.randint(1, 2)
    kept = [line for number, line in enumerate(letter.lines) if number != index]
    down = (press_keys("Down"),) * index
    return letter.problem(
        f'Delete the paragraph that begins with "{letter.lines[index][:14]}", without leaving an empty line.',
        (START, *down, press_keys("shift", "Down"), press_keys("Delete")),
        lines=kept,
    )


def replace(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    old, new = letter.city, letter.new_city
    return letter.problem(
        f'Replace every "{old}" by "{new}".',
        (
            press_keys("ctrl", "h"),
            type_text(old),
            press_keys("alt", "p"),
            type_text(new),
            press_keys("alt", "l"),
            REST,
            press_keys("Escape"),
        ),
        lines=[line.replace(old, new) for line in letter.lines],
    )


def table(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    columns, rows = rng.sample(range(3, 8), 2)
    return letter.problem(
        f"Insert a table of {columns} columns and {rows} rows at the end of the document.",
        (
            END,
            press_keys("ctrl", "F12"),
            press_keys("Tab"),
            type_text(str(columns)),
            press_keys("alt", "r"),
            type_text(str(rows)),
            ENTER,
            REST,
        ),
        (["tables", 0], {"rows": rows, "columns": columns}),
    )


def bullets(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    return letter.problem(
        "Make the last three lines a bulleted list.",
        (
            START,
            press_keys("Down"),
            press_keys("ctrl", "shift", "End"),
            press_keys("shift", "F12"),
        ),
        (["lists"], 3),
    )


def export_pdf(rng: random.Random, split: Split) -> Problem:
    letter = _Letter(rng, split)
    path = f"{HOME}/{letter.city.lower()}.pdf"
    return Problem(
        instruction=f'Export the document as PDF to "{path}".',
        config=letter.config,
        evaluator=command_says(f"head -c 5 {path} 2>/dev/null", "%PDF-", 10.0),
        actions=(
            click(*PDF),
            REST,
            press_keys("ctrl", "a"),
            type_text(path.rsplit("/", 1)[-1]),
            ENTER,
            DONE,
        ),
    )


KINDS = (
    kind("writer/append", 2, append),
    kind("writer/face", 2, title_face),
    kind("writer/heading", 2, heading),
    kind("writer/align", 2, align),
    kind("writer/delete", 3, delete_paragraph),
    kind("writer/replace", 3, replace),
    kind("writer/table", 3, table),
    kind("writer/bullets", 2, bullets),
    kind("writer/pdf", 3, export_pdf),
)
