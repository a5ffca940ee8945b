"""The families of smoldesk, a builder each: the screen, the instruction, what counts, and the oracle."""

from collections.abc import Sequence
from typing import Any

from training.content.task_sets.smoldesk.screens import Desk, Widget, result_is, share_of_fields, state_is
from training.content.task_sets.smoldesk.words import KEYS, ORDERS
from training.content.task_sets.steps_and_evaluators import (
    DONE,
    file_holds,
    place_window,
    press_keys,
    setup_step,
    type_text,
)
from training.content.task_sets.task_family import Problem
from training.contracts.types import Action

NOTE = "/home/user/note.txt"
ON_OFF = {True: "on", False: "off"}


def _problem(
    instruction: str, config: tuple[dict[str, Any], ...], evaluator: dict[str, Any], *actions: Action
) -> Problem:
    return Problem(instruction=instruction, config=config, evaluator=evaluator, actions=(*actions, DONE))


def form(desk: Desk) -> Problem:
    fields, switches, buttons = desk.entries(2, 4), desk.checks(1, 3), desk.buttons(3, 5)
    target, button, value = desk.rng.choice(fields), desk.rng.choice(buttons), desk.value()
    target.text = ""
    widgets = [*fields, *switches, *buttons]
    return _problem(
        desk.rng.choice(
            (
                f"Enter {value} as {target.name} and press {button.name}.",
                f"Set {target.name} to {value}, then press {button.name}.",
            )
        ),
        desk.window((desk.rng.choice(desk.words.windows), widgets)),
        state_is(widgets, fields={target.name: value}, pressed=[button.name]),
        target.click(),
        type_text(value),
        button.click(),
    )


def form8(desk: Desk) -> Problem:
    """Ten turns with a graded score: Tab goes from field to field, in the order of the screen."""
    fields = desk.entries(8, 8)
    for entry in fields:
        entry.text = ""
    goal = {entry.name: desk.value() for entry in fields}
    words = desk.rng.sample([f"{name}: {value}" for name, value in goal.items()], len(goal))
    return _problem(
        f"Fill in {', '.join(words)}.",
        desk.window((desk.rng.choice(desk.words.windows), fields)),
        share_of_fields(goal),
        fields[0].click(),
        *(type_text(f"{value}\t") for value in goal.values()),
    )


def toggle(desk: Desk) -> Problem:
    """At least one of the two is wrong at first."""
    switches, buttons = desk.checks(4, 6), desk.buttons(3, 5)
    one, two = desk.rng.sample(switches, 2)
    wrong = desk.rng.choice(((True, False), (False, True), (True, True)))
    goal = {one.name: one.on != wrong[0], two.name: two.on != wrong[1]}
    widgets = [*switches, *buttons]
    words = " and ".join(f"{name} is {ON_OFF[on]}" for name, on in goal.items())
    config = desk.window((desk.rng.choice(desk.words.windows), widgets))
    clicks = [switch.click() for switch, is_wrong in zip((one, two), wrong, strict=True) if is_wrong]
    return _problem(
        f"Make sure that {words}.",
        config,
        state_is(widgets, checks=goal),
        *clicks,
    )


def pick(desk: Desk) -> Problem:
    low, high, note = desk.rng.choice(ORDERS)
    rows, buttons = desk.rows(3, 4), desk.buttons(3, 5)
    tens = desk.rng.sample(range(1, 10), len(rows))
    numbers = [10 * ten + desk.rng.randrange(10) for ten in tens]
    for row, number in zip(rows, numbers, strict=True):
        row.note = note.format(number)
    word, extreme = desk.rng.choice(((low, min), (high, max)))
    target = rows[numbers.index(extreme(numbers))]
    widgets = [*buttons, *rows]
    return _problem(
        f"Select the {word} item.",
        desk.window((desk.rng.choice(desk.words.windows), widgets)),
        state_is(widgets, selected=target.name),
        target.click(),
    )


def rename(desk: Desk) -> Problem:
    """F2 opens a dialog with the whole name selected."""
    ending = desk.rng.choice(desk.words.endings)
    *names, new = [f"{name}{ending}" for name in desk.some(desk.words.files, 4, 5)]
    rows, buttons = [Widget(kind="row", name=name) for name in names], desk.buttons(3, 4)
    target = desk.rng.choice(rows)
    widgets = [*buttons, *rows]
    return _problem(
        desk.rng.choice((f"Rename {target.name} to {new}.", f"Give the file {target.name} the name {new}.")),
        desk.window((desk.rng.choice(desk.words.windows), widgets)),
        state_is(widgets, rows=[new if row is target else row.name for row in rows]),
        target.click(),
        press_keys("F2"),
        type_text(new),
        press_keys("Return"),
    )


def copy(desk: Desk) -> Problem:
    """Two pages of one window, seven turns."""
    rng = desk.rng
    here, there = rng.sample(desk.words.programs, 2)
    rows = [Widget(kind="row", name=name, note=desk.number()) for name in desk.some(desk.words.things, 3, 3)]
    fields, buttons = desk.entries(2, 3), desk.buttons(3, 3)
    for entry in fields:
        entry.text = ""
    row, target, button = rng.choice(rows), rng.choice(fields), rng.choice(buttons)
    pages = [[Widget(kind="page", name=name) for name in (here, there)] for _ in range(2)]
    first, second = [*pages[0], *desk.buttons(2, 2), *rows], [*pages[1], *fields, *buttons]
    return _problem(
        f"Copy the {row.name} number from {here} into {target.name} in {there} with ctrl+c and ctrl+v, "
        f"then press {button.name}.",
        desk.window((here, first), (there, second)),
        state_is([*first, *second], fields={target.name: row.note}, pressed=[button.name]),
        row.click(),
        press_keys("ctrl", "c"),
        pages[0][1].click(),
        target.click(),
        press_keys("ctrl", "v"),
        button.click(),
    )


def mixed(desk: Desk) -> Problem:
    """Words of form and of toggle together; never trained on."""
    rng = desk.rng
    fields, switches, buttons = desk.entries(2, 3), desk.checks(2, 4), desk.buttons(3, 4)
    target, switch, button, value = (
        rng.choice(fields),
        rng.choice(switches),
        rng.choice(buttons),
        desk.value(),
    )
    target.text, goal = "", rng.random() < 0.5
    widgets = [*fields, *switches, *buttons]
    return _problem(
        f"Set {target.name} to {value}, make sure that {switch.name} is {ON_OFF[goal]} "
        f"and press {button.name}.",
        desk.window((rng.choice(desk.words.windows), widgets)),
        state_is(widgets, fields={target.name: value}, checks={switch.name: goal}, pressed=[button.name]),
        target.click(),
        type_text(value),
        *([switch.click()] if switch.on != goal else []),
        button.click(),
    )


def editor(desk: Desk) -> Problem:
    """In mousepad, which was not written for training; never trained on."""
    rng = desk.rng
    old, new = rng.sample(desk.words.values, 2)
    x, y, width, height = rng.randrange(20, 500), rng.randrange(60, 360), 480, 320
    return _problem(
        f"Replace the text by {new} and save with ctrl+s.",
        (
            setup_step("write_file", path=NOTE, content=old),
            setup_step("launch", command=["mousepad", NOTE]),
            place_window("note.txt", (x, y, width, height)),
            setup_step("wait_color", x=x + width // 2, y=y + height - 30, color="#ffffff"),
        ),
        file_holds(NOTE, new, wait_s=0.5),
        press_keys("ctrl", "a"),
        type_text(new),
        press_keys("ctrl", "s"),
    )


def _everything(desk: Desk) -> list[Widget]:
    widgets = [*desk.entries(2, 3), *desk.checks(1, 3), *desk.buttons(3, 5)]
    desk.rng.shuffle(widgets)
    return [*widgets, *desk.rows(2, 3)]


def literal(desk: Desk) -> Problem:
    """The family that teaches the format: the instruction names each action."""
    rng, widgets = desk.rng, _everything(desk)
    log: list[list[str]] = []
    actions: list[Action] = []
    words: list[str] = []

    def click(widget: Widget) -> None:
        log.append(["click", widget.name])
        actions.append(widget.click())
        words.append(f"Click {widget.name}.")

    config = desk.window((rng.choice(desk.words.windows), widgets))
    unclicked = list(widgets)
    while not log or (len(log) < 3 and rng.random() < 0.6):
        kind = rng.choice(("click", "click", "type", "key"))
        if kind == "key" or len(log) > 1 and kind == "type":
            keys = rng.choice(KEYS)
            log.append(["key", "+".join(keys)])
            actions.append(press_keys(*keys))
            words.append(f"Press {'+'.join(keys)}.")
            continue
        target = rng.choice([one for one in unclicked if kind == "click" or one.kind == "entry"])
        unclicked.remove(target)
        click(target)
        if kind == "type":
            log.append(["type", value := desk.value()])
            actions.append(type_text(value))
            words.append(f"Type {value}.")
    return _problem(" ".join(words), config, result_is(log=log), *actions)


def press(desk: Desk) -> Problem:
    """One widget is named: what an uninformative start can learn from reward alone."""
    return _one_click(desk, _everything(desk), is_named=True)


def uninformative(desk: Desk) -> Problem:
    """The same screens and words, but the oracle clicks one drawn uniformly, whatever the instruction."""
    return _one_click(desk, _everything(desk), is_named=False)


def _one_click(desk: Desk, widgets: Sequence[Widget], *, is_named: bool) -> Problem:
    named = desk.rng.choice(widgets)
    clicked = named if is_named else desk.rng.choice(widgets)
    return _problem(
        f"Click {named.name}.",
        desk.window((desk.rng.choice(desk.words.windows), list(widgets))),
        result_is(log=[["click", clicked.name]]),
        clicked.click(),
    )
