"""The task set windows-keyboard: 47 tasks for a Windows desktop that is driven by its keyboard.

    level 1  30 tasks  open a program (process_running) or a window of the system (window_open)
    level 2   8 tasks  make a folder or a file (file_exists), write a note (file_contains)
    level 3   6 tasks  rename, copy, move, correct a text, set a value (setting_value)
    level 4   3 tasks  several of these in a row; the score is the mean of the parts

The structure (47 tasks, four levels, five checkers) is that of the Windows seed; the tasks are our own. The
seed picks the words of levels 2 to 4. Titles are those of an English Windows; nothing here needs rights that
ask for a password, and every oracle uses the keyboard alone. Ten tasks are held out, from every level some.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from training.content.task_sets.steps_and_evaluators import DONE, press_keys, type_text
from training.content.task_sets.task_family import COLOURS, NOUNS
from training.content.task_sets.windows_keyboard.programs_and_dialogs import DIALOGS, PROGRAMS
from training.content.task_sets.windows_keyboard.windows_steps_and_evaluators import (
    WORK,
    Config,
    Evaluator,
    file_contains,
    file_exists,
    in_work,
    mean_of,
    process_running,
    run,
    setting_value,
    wait,
    window_open,
    work_folder,
    write_note,
)
from training.contracts.types import Action, Task

SCREEN = (1024, 768)
HELD_OUT = {1: 5, 2: 4, 3: 6, 4: 3}
"""Level -> every n-th task of it is held out."""
MAX_TURNS = {1: 8, 2: 10, 3: 10, 4: 16}


@dataclass(frozen=True, slots=True)
class Spec:
    """One task before it has its number."""

    name: str
    level: int
    instruction: str
    evaluator: Evaluator
    actions: tuple[Action, ...]
    config: Config = ()


def generate(seed: int = 0) -> list[Task]:
    """All 47, in the order of their levels."""
    rng = random.Random(f"{seed}/windows-keyboard")
    words = rng.sample(sorted(NOUNS), 16)
    colours = rng.sample(sorted(COLOURS), 8)
    specs = [
        *_programs(),
        *_windows(),
        *_files(words[:3]),
        *_notes(words[3:8], colours),
        *_changes(words[8:13], colours),
        *_projects(words[13:16], colours),
    ]
    return list(_numbered(specs))


def _numbered(specs: Iterable[Spec]) -> Iterator[Task]:
    counts: dict[int, int] = {}
    for spec in specs:
        counts[spec.level] = counts.get(spec.level, 0) + 1
        yield Task(
            task_id=f"windows-keyboard/{spec.name}",
            instruction=spec.instruction,
            family=spec.name.split("/")[0],
            level=spec.level,
            split="heldout" if counts[spec.level] % HELD_OUT[spec.level] == 0 else "train",
            config=spec.config,
            evaluator=spec.evaluator,
            screen=SCREEN,
            oracle={"actions": [a.model_dump(mode="json", exclude_defaults=True) for a in spec.actions]},
            max_turns=MAX_TURNS[spec.level],
            os="windows",
        )


def _programs() -> Iterator[Spec]:
    all_names = [name for program in PROGRAMS for name in program.processes]
    for program in PROGRAMS:
        yield Spec(
            f"program/{program.command}",
            1,
            f"Open {program.title}.",
            process_running(program.processes, all_names),
            (*run(program.command), DONE),
        )


def _windows() -> Iterator[Spec]:
    titles = [title for title, _, _ in DIALOGS]
    for title, words, command in DIALOGS:
        name = title.lower().replace(" ", "-")
        yield Spec(f"window/{name}", 1, f"Open {words}.", window_open(title, titles), (*run(command), DONE))


def _files(words: list[str]) -> Iterator[Spec]:
    box, inner, leaf = words
    yield Spec(
        "file/folder",
        2,
        f'Make a folder named "{box}" in {WORK}.',
        file_exists(box, folder=True),
        (*run(f"cmd /c mkdir {in_work(box)}"), DONE),
        work_folder(),
    )
    yield Spec(
        "file/nested-folder",
        2,
        f'Make a folder named "{inner}" in {WORK}, and in it a folder named "{leaf}".',
        file_exists(f"{inner}/{leaf}", folder=True),
        (*run(f"cmd /c mkdir {in_work(f'{inner}/{leaf}')}"), DONE),
        work_folder(),
    )
    yield Spec(
        "file/empty",
        2,
        f'Make an empty text file named "{leaf}.txt" in {WORK}.',
        file_exists(f"{leaf}.txt"),
        (*run(f"cmd /c type nul > {in_work(leaf)}.txt"), DONE),
        work_folder(),
    )


def _notes(words: list[str], colours: list[str]) -> Iterator[Spec]:
    texts = [
        f"{colours[0]} {words[0]}",
        f"{colours[1]} {words[1]}\n{colours[2]} {words[2]}",
        f"{len(words[3])}{len(words[0])}{len(colours[3])} {words[3]}s",
        f"{words[4].upper()}, {colours[4]}!",
        f"{words[0]} & {words[2]} ({colours[5]})",
    ]
    names = ["words", "two-lines", "number", "capitals", "signs"]
    for name, word, text in zip(names, words, texts, strict=True):
        lines = text.replace("\n", '" and below it "')
        yield Spec(
            f"note/{name}",
            2,
            f'Write "{lines}" with Notepad and save it as {in_work(word)}.txt.',
            file_contains(f"{word}.txt", text),
            (*write_note(f"{word}.txt", text), DONE),
            work_folder(),
        )


def _changes(words: list[str], colours: list[str]) -> Iterator[Spec]:
    old, new, kept, goal, value = words
    yield Spec(
        "change/rename",
        3,
        f'Rename {in_work(old)}.txt to "{new}.txt".',
        file_exists(f"{new}.txt", gone=[f"{old}.txt"]),
        (*run(f"cmd /c ren {in_work(old)}.txt {new}.txt"), DONE),
        work_folder(**{old: colours[0]}),
    )
    yield Spec(
        "change/copy",
        3,
        f'Copy {in_work(kept)}.txt to a file named "{goal}.txt" in the same folder.',
        file_exists(f"{goal}.txt", kept=[f"{kept}.txt"]),
        (*run(f"cmd /c copy {in_work(kept)}.txt {in_work(goal)}.txt"), DONE),
        work_folder(**{kept: colours[1]}),
    )
    yield Spec(
        "change/move",
        3,
        f'Make a folder named "{goal}" in {WORK} and move {in_work(old)}.txt into it.',
        file_exists(f"{goal}/{old}.txt", gone=[f"{old}.txt"]),
        (
            *run(f"cmd /c md {in_work(goal)} & move {in_work(old)}.txt {in_work(goal)}"),
            DONE,
        ),
        work_folder(**{old: colours[2]}),
    )
    yield Spec(
        "change/text",
        3,
        f'Replace the whole text of {in_work(kept)}.txt by "{colours[3]} {new}" and save it.',
        file_contains(f"{kept}.txt", f"{colours[3]} {new}", before=colours[4]),
        (
            *run(f"notepad {in_work(kept)}.txt"),
            press_keys("ctrl", "a"),
            type_text(f"{colours[3]} {new}"),
            press_keys("ctrl", "s"),
            wait(1.0),
            DONE,
        ),
        work_folder(**{kept: colours[4]}),
    )
    name = value.upper()
    yield Spec(
        "setting/variable",
        3,
        f'Set the environment variable {name} of your user to "{colours[5]}".',
        setting_value("HKCU\\Environment", name, colours[5], had_key=True),
        (*run(f"setx {name} {colours[5]}"), DONE),
    )
    yield Spec(
        "setting/registry",
        3,
        f"In the registry, give HKEY_CURRENT_USER\\Software\\{name} the text value Colour = {colours[6]}.",
        setting_value(f"HKCU\\Software\\{name}", "Colour", colours[6]),
        (*run(f"reg add HKCU\\Software\\{name} /v Colour /d {colours[6]}"), DONE),
    )


def _projects(words: list[str], colours: list[str]) -> Iterator[Spec]:
    first, second, third = words
    text = f"{colours[0]} {second}"
    folder = f"cmd /c mkdir {in_work(first)}"
    yield Spec(
        "project/note",
        4,
        f'Make a folder named "{first}" in {WORK}. With Notepad, save a note that says "{text}" in it as '
        f'"{second}.txt". Leave Notepad open.',
        mean_of(
            file_exists(first, folder=True),
            file_contains(f"{first}/{second}.txt", text),
            process_running(("notepad",)),
        ),
        (*run(folder), *write_note(f"{first}/{second}.txt", text), DONE),
        work_folder(),
    )
    moves = " & ".join(f"move {in_work(word)}.txt {in_work(third)}" for word in (first, second))
    yield Spec(
        "project/tidy",
        4,
        f'Move {in_work(first)}.txt and {in_work(second)}.txt into a new folder "{third}" in {WORK}, then '
        f'set the environment variable {third.upper()} of your user to "tidy".',
        mean_of(
            file_exists(f"{third}/{first}.txt", gone=[f"{first}.txt"]),
            file_exists(f"{third}/{second}.txt", gone=[f"{second}.txt"]),
            setting_value("HKCU\\Environment", third.upper(), "tidy", had_key=True),
        ),
        (
            *run(f"cmd /c md {in_work(third)} & {moves}"),
            *run(f"setx {third.upper()} tidy"),
            DONE,
        ),
        work_folder(**{first: colours[1], second: colours[2]}),
    )
    left, right = len(first) * 7 + 4, len(third) * 3 + 8
    total = str(left * right)
    yield Spec(
        "project/sum",
        4,
        f"Work out {left} times {right} and save the number alone as {in_work(second)}.txt. "
        "Then open Paint, so that it is in front.",
        mean_of(file_contains(f"{second}.txt", total), window_open("Paint")),
        (*write_note(f"{second}.txt", total), *run("mspaint"), DONE),
        work_folder(),
    )
