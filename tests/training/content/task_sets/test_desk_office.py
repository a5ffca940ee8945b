"""The task set desk-office: from its seed, with held-out words of its own, and runnable where it says."""

import json
from collections import Counter

from training.actions.coordinates import off_screen_error
from training.content.task_sets.desk_office import KINDS, generate
from training.content.task_sets.desk_office.kinds import CITIES, GOODS, PEOPLE, SCREEN, TOPICS
from training.contracts.config import DesktopConfig
from training.contracts.types import Action, Task
from training.tasks.supported_by.runtimes import TaskRuntime, reason_unsupported, runtime_of

TASKS = generate()
LONGEST = {1: 2, 2: 5, 3: 9, 4: 15}
"""Level -> actions of its oracles, not counting waits and the last one, which ends the episode."""
ON_EVERY_DESKTOP = {"editor", "files", "terminal", "settings"}


def words_of(split: str) -> set[str]:
    texts = [json.dumps([task.instruction, task.config]) for task in TASKS if task.split == split]
    return {word for word in (*CITIES, *GOODS, *PEOPLE) if any(word in text for text in texts)}


def test_there_are_120_tasks_in_every_application_and_split():
    assert len(TASKS) >= 120
    assert len({task.task_id for task in TASKS}) == len(TASKS)
    families = Counter((task.family, task.split) for task in TASKS)
    assert {family for family, _ in families} >= {
        *ON_EVERY_DESKTOP,
        "browser",
        "writer",
        "calc",
        "impress",
        "several",
    }
    assert all(families[family, "heldout"] * 2 == families[family, "train"] for family, _ in families)
    assert {task.level for task in TASKS} == set(LONGEST)


def test_the_set_follows_from_its_seed_and_survives_json():
    assert generate() == TASKS
    assert generate(1) != TASKS
    assert all(Task.model_validate_json(task.model_dump_json()) == task for task in TASKS)


def test_no_instruction_and_no_word_of_a_held_out_task_is_practised():
    train = {task.instruction for task in TASKS if task.split == "train"}
    assert not [task.task_id for task in TASKS if task.split == "heldout" and task.instruction in train]
    assert not words_of("train") & words_of("heldout")
    assert len(TOPICS) == len(set(TOPICS))


def test_an_oracle_takes_what_its_level_says_and_stays_on_the_screen():
    for task in TASKS:
        *actions, last = [Action.model_validate(action) for action in task.oracle["actions"]]
        assert last.status == "success"
        assert sum(action.kind != "wait" for action in actions) <= LONGEST[task.level], task.task_id
        assert len(actions) < task.max_turns, task.task_id
        assert all(off_screen_error(action, SCREEN) is None for action in actions)


def test_what_needs_libreoffice_or_a_browser_says_so():
    for task in TASKS:
        reason = reason_unsupported(TaskRuntime.OWN, task)
        assert reason_unsupported(TaskRuntime.OWN_OFFICE, task) == ""
        if task.family in ON_EVERY_DESKTOP:
            assert reason == ""
        elif task.family != "several":
            assert "is not installed in our desktops" in reason


def test_desktops_with_office_programs_are_chosen_by_their_image():
    for values, runtime in (
        ({}, TaskRuntime.OWN),
        ({"x11": {"image": "office"}}, TaskRuntime.OWN_OFFICE),
        ({"provider": "qemu"}, TaskRuntime.OWN),
        ({"provider": "qemu", "qemu": {"image": "debian-office"}}, TaskRuntime.OWN_OFFICE),
    ):
        assert runtime_of(DesktopConfig.model_validate(values)) is runtime


def test_kinds_have_names_of_their_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
