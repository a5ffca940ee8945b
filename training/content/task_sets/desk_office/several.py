"""Jobs that need two or three programs: what one shows goes into another."""

import random
from collections.abc import Iterator
from typing import Any

from training.content.task_sets.desk_office.browser import (
    ENTER,
    TAB,
    open_browser,
    page,
    price_table,
    prices_of,
)
from training.content.task_sets.desk_office.file_manager import FOLDER, open_folder, select
from training.content.task_sets.desk_office.kinds import (
    CITIES,
    GOODS,
    HOME,
    OTHER_WINDOW,
    PEOPLE,
    REST,
    TOPICS,
    all_of,
    click,
    folder_holds,
    json_holds,
    kind,
    open_in_editor,
    window_in_front,
    word,
    words,
)
from training.content.task_sets.desk_office.odf_files import Cell, spreadsheet, text_document
from training.content.task_sets.desk_office.terminal import open_terminal
from training.content.task_sets.desk_office.writer import END, SAVE, document_at, name_of, open_document
from training.content.task_sets.steps_and_evaluators import (
    DONE,
    file_holds,
    press_keys,
    setup_step,
    type_text,
)
from training.content.task_sets.task_family import Problem, Split
from training.contracts.types import Action

NOTE_BOX = (360, 400, 600, 300)
"""Of the editor beside another program."""


def open_calculator() -> tuple[dict[str, Any], ...]:
    return (
        setup_step("launch", command=["galculator"]),
        setup_step("activate_window", window_name="galculator"),
    )


def _on_calculator(keys: str) -> Iterator[Action]:
    """Type on the calculator, resting before a key comes again: it is lost while its button is down."""
    start = 0
    for end in range(1, len(keys) + 1):
        if end == len(keys) or keys[end] in keys[start:end]:
            yield type_text(keys[start:end])
            yield REST
            start = end


def calculate(rng: random.Random, split: Split) -> Problem:
    """The result is copied, not typed: the oracle knows only the question."""
    good, number, price = word(rng, split, GOODS), rng.randint(12, 89), rng.randint(13, 97)
    path = f"{HOME}/{word(rng, split, TOPICS)}.txt"
    return Problem(
        instruction=(
            f"Calculate what {number} {good} cost at {price} each, write the number below "
            "the line, and save the file."
        ),
        config=(*open_in_editor(path, f"Cost of {good}:\n", NOTE_BOX), *open_calculator()),
        evaluator=file_holds(path, f"Cost of {good}:\n{number * price}", wait_s=1.0),
        actions=(
            *_on_calculator(f"{number}*{price}\n"),
            press_keys("ctrl", "c"),
            *OTHER_WINDOW,
            press_keys("ctrl", "End"),
            press_keys("ctrl", "v"),
            SAVE,
            DONE,
        ),
    )


def count_files(rng: random.Random, split: Split) -> Problem:
    number, path = rng.randint(13, 38), f"{HOME}/{word(rng, split, TOPICS)}.txt"
    files = {f"{name}_txt": "x\n" for name in (f"scan{index:02}" for index in range(number))}
    return Problem(
        instruction=(
            f"Write how many files lie in the terminal's folder below the line in {name_of(path)}. Save it."
        ),
        config=(*open_in_editor(path, "Files:\n", NOTE_BOX), *open_terminal(**files)),
        evaluator=file_holds(path, f"Files:\n{number}", wait_s=1.0),
        actions=(
            type_text("ls | wc -l\n"),
            *OTHER_WINDOW,
            press_keys("ctrl", "End"),
            type_text(str(number)),
            SAVE,
            DONE,
        ),
    )


def rename_and_edit(rng: random.Random, split: Split) -> Problem:
    """The editor shows another file at first."""
    old, other = words(rng, split, GOODS, 2)
    new, person = word(rng, split, CITIES).lower(), word(rng, split, PEOPLE)
    return Problem(
        instruction=(
            f'Rename "{old}.txt" to "{new}.txt" in the file manager. Then open it in the editor, add the '
            f'line "Checked by {person}" at its end, and save it.'
        ),
        config=(
            *open_in_editor(f"{HOME}/todo.txt", "Check the files.\n", NOTE_BOX),
            *open_folder([f"{old}.txt", f"{other}.txt"]),
        ),
        evaluator=all_of(
            file_holds(f"{FOLDER}/{new}.txt", f"{old}.txt\nChecked by {person}", wait_s=2.0),
            folder_holds(FOLDER, [f"{new}.txt", f"{other}.txt"]),
        ),
        actions=(
            *select(old),
            press_keys("F2"),
            type_text(new),
            ENTER,
            *OTHER_WINDOW,
            press_keys("ctrl", "o"),
            REST,
            type_text(f"{FOLDER}/{new}.txt"),
            REST,
            ENTER,
            REST,
            press_keys("ctrl", "End"),
            type_text(f"Checked by {person}"),
            SAVE,
            DONE,
        ),
    )


def note_to_form(rng: random.Random, split: Split) -> Problem:
    person, city = word(rng, split, PEOPLE), word(rng, split, CITIES)
    fields = "<label>Name <input name=who autofocus></label><br><label>City <input name=city></label><br>"
    body = (
        '<form onsubmit="said(`${this.who.value} of ${this.city.value} signed up`);return false">'
        f"{fields}<button>Send</button></form>"
    )
    path = f"{HOME}/{word(rng, split, TOPICS)}.txt"
    note = open_in_editor(path, f"Name: {person}\nCity: {city}\n", NOTE_BOX)
    return Problem(
        instruction=f"Sign up the guest of {name_of(path)} with the form in the browser.",
        config=(*open_browser("Guests", guests=page("Guests", body)), *note),
        evaluator=window_in_front(f"{person} of {city} signed up"),
        actions=(*OTHER_WINDOW, type_text(person), TAB, type_text(city), ENTER, DONE),
    )


def page_to_sheet(rng: random.Random, split: Split) -> Problem:
    prices = prices_of(rng, split, 3)
    path = f"{HOME}/{word(rng, split, TOPICS)}.ods"
    rows: list[list[Cell]] = [["Article", "Price"]]
    rows += [[name] for name in prices]
    typed = "".join(f"{price}\n" for price in prices.values())
    shop = open_browser("Prices", prices=page("Prices", price_table(prices)))
    values: list[Any] = [
        (["sheets", 0, "cells", f"B{row}", "value"], price) for row, price in enumerate(prices.values(), 2)
    ]
    names: list[Any] = [
        (["sheets", 0, "cells", f"A{row}", "value"], name) for row, name in enumerate(prices, 2)
    ]
    return Problem(
        instruction=f"Enter the prices of the page in the browser into column B of {name_of(path)}. Save it.",
        config=(*open_document(path, spreadsheet(rows)), *shop),
        evaluator=json_holds(document_at(path), *names, *values),
        actions=(*OTHER_WINDOW, click(163, 207), type_text(typed), SAVE, DONE),
    )


def page_to_letter(rng: random.Random, split: Split) -> Problem:
    person, hour = word(rng, split, PEOPLE), rng.randint(9, 17)
    path = f"{HOME}/{word(rng, split, TOPICS)}.odt"
    line = f"{person} arrives at {hour}:40."
    start = page("Visit", "<p>The visitor:</p><p><a href='guest.html'>Guest</a></p>")
    guest = page("Guest", f"<p>{line}</p>")
    return Problem(
        instruction=(
            "The page Guest, linked in the browser, has one sentence. "
            f"Add it as a last paragraph to {name_of(path)}, and save the document."
        ),
        config=(
            *open_document(path, text_document(["Dear colleagues,"])),
            *open_browser("Visit", visit=start, guest=guest),
        ),
        evaluator=json_holds(
            document_at(path),
            (["num_paragraphs"], 2),
            (["paragraphs", 0, "text"], "Dear colleagues,"),
            (["paragraphs", 1, "text"], line),
        ),
        actions=(
            TAB,
            ENTER,
            *OTHER_WINDOW,
            END,
            type_text("\n" + line),
            SAVE,
            DONE,
        ),
    )


KINDS = (
    kind("several/calculate", 3, calculate),
    kind("several/count-files", 2, count_files),
    kind("several/rename-and-edit", 4, rename_and_edit),
    kind("several/note-to-form", 3, note_to_form),
    kind("several/page-to-sheet", 2, page_to_sheet),
    kind("several/page-to-letter", 3, page_to_letter),
)
