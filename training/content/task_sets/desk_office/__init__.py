"""The task set desk-office: desktop jobs in real programs, one file per application.

    editor, files, terminal           programs that every desktop has
    browser, writer, calc, impress    programs of `make setup-office` and of the image debian-office
    several                           one job in two or three of them
    settings                          menus and dialogs that change how a program works

Levels count what a job takes at least: 1 one or two actions, 2 up to five, 3 up to nine, 4 up to fifteen.
Every kind of job gives two train tasks and one held-out task, whose words no train task uses.
Everything follows from the seed. Oracles press keys and click, and write no file themselves.
"""

from training.content.task_sets.desk_office import (
    browser,
    calc,
    editor,
    file_manager,
    impress,
    several,
    terminal,
    writer,
)
from training.content.task_sets.desk_office.kinds import SCREEN
from training.content.task_sets.task_family import family_tasks
from training.contracts.types import Task

KINDS = tuple(
    kind
    for part in (editor, file_manager, terminal, browser, writer, calc, impress, several)
    for kind in part.KINDS
)


def generate(seed: int = 0) -> list[Task]:
    """All tasks, application by application."""
    return [
        task for kind in KINDS for task in family_tasks(kind, seed, task_set="desk-office", screen=SCREEN)
    ]
