"""Jobs in LibreOffice Calc: values, formulas, rows, order, faces and copies as CSV."""

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
    json_holds,
    kind,
    word,
    words,
)
from training.content.task_sets.desk_office.odf_files import Cell, spreadsheet
from training.content.task_sets.desk_office.writer import ENTER, SAVE, document_at, name_of, open_document
from training.content.task_sets.steps_and_evaluators import DONE, file_holds, press_keys, type_text
from training.content.task_sets.task_family import Problem, Split
from training.contracts.types import Action

COLUMN_LEFT, COLUMN_WIDTH = 41, 82
ROW_TOP, ROW_HEIGHT = 182, 17.06
SORT_UP = (760, 64)
"""Sort ascending in the toolbar."""
Row = list[Cell]


def at(cell: str) -> tuple[int, int]:
    """Where a cell with one letter is on the screen, in a window that was just opened."""
    column, row = ord(cell[0]) - ord("A"), int(cell[1:])
    return COLUMN_LEFT + column * COLUMN_WIDTH + 40, round(ROW_TOP + (row - 0.5) * ROW_HEIGHT)


def row_head(row: int) -> tuple[int, int]:
    return 20, at(f"A{row}")[1]


class _Sheet:
    """A table of goods of a split, open in Calc: article, number, price."""

    def __init__(self, rng: random.Random, split: Split, number: int = 4) -> None:
        self.path = f"{HOME}/{word(rng, split, TOPICS)}.ods"
        self.goods = words(rng, split, GOODS, number)
        self.numbers = rng.sample(range(2, 60), number)
        self.prices = rng.sample(range(3, 90), number)
        self.rows: list[Row] = [["Article", "Number", "Price"]]
        self.rows += [list(row) for row in zip(self.goods, self.numbers, self.prices, strict=True)]
        self.end = number + 1
        """The last row with something in it."""

    def problem(
        self, instruction: str, actions: tuple[Action, ...], *expected: Any, rows: list[Row] | None = None
    ) -> Problem:
        """The cells must hold `rows` (those at first) besides what is expected."""
        cells: list[Any] = [
            (["sheets", 0, "cells", f"{letter}{number}", "value"], value)
            for number, row in enumerate(rows or self.rows, 1)
            for letter, value in zip("ABCDEF", row, strict=False)
        ]
        return Problem(
            instruction=f"{instruction} Then save {name_of(self.path)}.",
            config=open_document(self.path, spreadsheet(self.rows)),
            evaluator=json_holds(document_at(self.path), *cells, *expected),
            actions=(*actions, SAVE, DONE),
        )


def _is(cell: str, value: Cell, key: str = "value") -> Any:
    return ["sheets", 0, "cells", cell, key], value


def enter(rng: random.Random, split: Split) -> Problem:
    sheet, cell, value = _Sheet(rng, split), f"{rng.choice('EFG')}{rng.randint(2, 9)}", rng.randint(100, 999)
    return sheet.problem(
        f"Enter {value} in cell {cell}.", (click(*at(cell)), type_text(f"{value}\n")), _is(cell, value)
    )


def correct(rng: random.Random, split: Split) -> Problem:
    sheet, index, value = _Sheet(rng, split), rng.randrange(4), rng.randint(100, 999)
    rows = [list(row) for row in sheet.rows]
    rows[index + 1][1] = value
    return sheet.problem(
        f"The number of {sheet.goods[index]} is wrong: it is {value}. Correct it.",
        (click(*at(f"B{index + 2}")), type_text(f"{value}\n")),
        rows=rows,
    )


def add_row(rng: random.Random, split: Split) -> Problem:
    sheet = _Sheet(rng, split, 3)
    new: Row = [word(rng, split, PEOPLE).split()[0], rng.randint(2, 60), rng.randint(3, 90)]
    typed = "\t".join(map(str, new)) + "\n"
    return sheet.problem(
        f'Add a row below the last one: "{new[0]}", {new[1]}, {new[2]}.',
        (click(*at(f"A{sheet.end + 1}")), type_text(typed)),
        rows=[*sheet.rows, new],
    )


FUNCTIONS = {"sum": "SUM", "average": "AVERAGE", "largest": "MAX", "smallest": "MIN"}


def formula(rng: random.Random, split: Split) -> Problem:
    sheet, (name, function) = _Sheet(rng, split), rng.choice(list(FUNCTIONS.items()))
    values = sheet.numbers
    result = {"sum": sum(values), "average": sum(values) / 4, "largest": max(values), "smallest": min(values)}
    cell = f"B{sheet.end + 1}"
    return sheet.problem(
        f"Write a formula into {cell} that gives the {name} of the numbers above it.",
        (click(*at(cell)), type_text(f"={function}(B2:B{sheet.end})\n")),
        _is(cell, result[name]),
        _is(cell, f"of:={function}([.B2:.B{sheet.end}])", "formula"),
    )


def products(rng: random.Random, split: Split) -> Problem:
    sheet = _Sheet(rng, split, 3)
    lines = "".join(f"=B{row}*C{row}\n" for row in range(2, sheet.end + 1))
    amounts = [number * price for number, price in zip(sheet.numbers, sheet.prices, strict=True)]
    return sheet.problem(
        'Head column D with "Amount" and give each row there the product of number and price, as formulas.',
        (click(*at("D1")), type_text("Amount\n"), type_text(lines)),
        _is("D1", "Amount"),
        *(_is(f"D{row}", amount) for row, amount in enumerate(amounts, 2)),
        *(_is(f"D{row}", f"of:=[.B{row}]*[.C{row}]", "formula") for row in range(2, sheet.end + 1)),
    )


def bold_head(rng: random.Random, split: Split) -> Problem:
    sheet = _Sheet(rng, split)
    return sheet.problem(
        "Make the first row bold.",
        (click(*row_head(1)), press_keys("ctrl", "b")),
        *(_is(f"{letter}1", True, "bold") for letter in "ABC"),
        _is("A2", False, "bold"),
    )


def delete_row(rng: random.Random, split: Split) -> Problem:
    sheet, index = _Sheet(rng, split), rng.randint(1, 3)
    return sheet.problem(
        f"Delete the whole row of {sheet.goods[index - 1]}.",
        (click(*row_head(index + 1)), press_keys("ctrl", "minus")),
        rows=[row for number, row in enumerate(sheet.rows) if number != index],
    )


def insert_row(rng: random.Random, split: Split) -> Problem:
    sheet, title = _Sheet(rng, split), f"Stock in {word(rng, split, CITIES)}"
    below = {
        f"{letter}{number}": value
        for number, row in enumerate(sheet.rows, 2)
        for letter, value in zip("ABC", row, strict=True)
    }
    return sheet.problem(
        f'Insert a row above the first one and write "{title}" into its first cell.',
        (click(*row_head(1)), press_keys("ctrl", "plus"), click(*at("A1")), type_text(f"{title}\n")),
        *(_is(cell, value) for cell, value in below.items()),
        rows=[[title]],
    )


def sort_rows(rng: random.Random, split: Split) -> Problem:
    sheet = _Sheet(rng, split)
    return sheet.problem(
        "Sort the rows below the heading by article, A to Z.",
        (click(*at("A2")), click(*SORT_UP)),
        rows=[sheet.rows[0], *sorted(sheet.rows[1:], key=lambda row: str(row[0]))],
    )


def save_csv(rng: random.Random, split: Split) -> Problem:
    sheet, name = _Sheet(rng, split), word(rng, split, CITIES).lower()
    text = "\n".join(",".join(map(str, row)) for row in sheet.rows)
    return Problem(
        instruction=f'Save the table as "{name}.csv" in the home folder, as text with commas.',
        config=open_document(sheet.path, spreadsheet(sheet.rows)),
        evaluator=file_holds(f"{HOME}/{name}.csv", text, wait_s=5.0),
        actions=(
            press_keys("ctrl", "shift", "s"),
            press_keys("ctrl", "a"),
            type_text(f"{name}.csv"),
            ENTER,
            REST,
            ENTER,
            REST,
            ENTER,
            DONE,
        ),
    )


KINDS = (
    kind("calc/enter", 2, enter),
    kind("calc/correct", 2, correct),
    kind("calc/add-row", 2, add_row),
    kind("calc/formula", 2, formula),
    kind("calc/products", 3, products),
    kind("calc/bold", 2, bold_head),
    kind("calc/delete-row", 2, delete_row),
    kind("calc/insert-row", 3, insert_row),
    kind("calc/sort", 2, sort_rows),
    kind("calc/csv", 3, save_csv),
)
