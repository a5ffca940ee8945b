"""The task set first-desk: the same for the same seed, without repeats, and not solvable blindly."""

from collections import Counter, defaultdict

import pytest

from training.actions.coordinates import off_screen_error
from training.actions.parse_completion import parse_completion
from training.actions.write_completion import completion_text
from training.content.task_sets.first_desk import FAMILIES as FIRST_FAMILIES
from training.content.task_sets.first_desk import NUM_ROWS, SCREEN, generate
from training.content.task_sets.first_desk.level_4 import LEVEL_4_FAMILIES, generate_all, generate_choice
from training.contracts.types import Action, Task
from training.tasks.supported_by.deskhand import unsupported_reason

TASKS = generate_all()
FAMILIES = (*FIRST_FAMILIES, *LEVEL_4_FAMILIES)
BY_FAMILY: dict[str, list[Task]] = defaultdict(list)
for _task in TASKS:
    BY_FAMILY[_task.family].append(_task)


def problem(task: Task) -> str:
    return f"{task.instruction} {task.config}"


def test_the_set_follows_from_its_seed():
    assert generate_all() == TASKS
    assert generate_all(1) != TASKS


def test_levels_1_to_3_are_the_front_of_the_whole_set():
    assert generate() == [task for task in TASKS if task.level <= 3]


def test_settings_are_chosen_on_tasks_that_are_neither_trained_nor_reported():
    chosen_on = generate_choice()
    assert Counter((task.family, task.split) for task in chosen_on) == Counter(
        (task.family, task.split) for task in TASKS
    )
    trained = {problem(task) for task in TASKS if task.split == "train"}
    assert {problem(task) for task in chosen_on if task.split == "train"} == trained
    assert {problem(task) for task in chosen_on if task.split == "heldout"}.isdisjoint(map(problem, TASKS))


def test_a_task_does_not_change_when_others_are_added():
    for family in FAMILIES:
        assert [task.task_id for task in BY_FAMILY[family.name]] == [
            f"first-desk/{family.name}/{number:04d}"
            for number in range(family.num_train + family.num_heldout)
        ]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_at_least_100_variants_in_both_splits(family):
    splits = Counter(task.split for task in BY_FAMILY[family.name])
    assert splits == {"train": family.num_train, "heldout": family.num_heldout}
    assert sum(splits.values()) >= 100
    assert splits["heldout"] >= 20


def test_no_problem_occurs_twice_in_any_split():
    assert max(Counter(map(problem, TASKS)).values()) == 1


@pytest.mark.parametrize("family", ["note", "answer", "replace", "rename"])
def test_held_out_texts_are_new_pairs_of_seen_words(family):
    phrases = {split: set() for split in ("train", "heldout")}
    for task in BY_FAMILY[family]:
        phrases[task.split].add(task.instruction)
    assert not phrases["train"] & phrases["heldout"]
    seen = {word for phrase in phrases["train"] for word in phrase.split()}
    assert {word for phrase in phrases["heldout"] for word in phrase.split()} <= seen


def test_every_task_is_supported_and_survives_json():
    for task in TASKS:
        assert unsupported_reason(task) == ""
        assert Task.model_validate_json(task.model_dump_json()) == task


def test_every_oracle_fits_its_turn_limit_and_the_screen():
    for task in TASKS:
        actions = [Action.model_validate(action) for action in task.oracle["actions"]]
        assert len(actions) <= task.max_turns
        assert actions[-1].status == "success"
        assert all(off_screen_error(action, SCREEN) is None for action in actions)


def test_the_text_of_a_demonstration_still_hits_its_widget():
    for task in BY_FAMILY["colour"]:
        spec = task.config[0]["parameters"]["spec"]
        clicked = parse_completion(
            completion_text(Action.model_validate(task.oracle["actions"][0]), SCREEN), screen=SCREEN
        ).action
        hit = [
            widget["id"]
            for widget in spec["widgets"]
            if 8 <= clicked.x - spec["x"] - widget["x"] < widget["width"] - 8
            and 8 <= clicked.y - spec["y"] - widget["y"] < widget["height"] - 8
        ]
        assert hit == [task.instruction.split()[2]]


def test_buttons_are_big_apart_and_inside_their_window():
    for task in BY_FAMILY["colour"] + BY_FAMILY["form"]:
        spec = task.config[0]["parameters"]["spec"]
        assert spec["x"] >= 1
        assert spec["y"] >= 20
        assert spec["x"] + spec["width"] < SCREEN[0]
        assert spec["y"] + spec["height"] < SCREEN[1]
        boxes = [(w["x"], w["y"], w["x"] + w["width"], w["y"] + w["height"]) for w in spec["widgets"]]
        for index, (left, top, right, bottom) in enumerate(boxes):
            assert left >= 0
            assert top >= 0
            assert right <= spec["width"]
            assert bottom <= spec["height"]
            if spec["widgets"][index]["kind"] == "button":
                assert right - left >= 90
                assert bottom - top >= 70
            for other in boxes[:index]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_the_best_blind_guess_of_a_menus_start_is_near_chance():
    """The instruction names the target; only the pixels say where the highlight starts."""
    starts: dict[str, Counter[int]] = defaultdict(Counter)
    for task in BY_FAMILY["menu"]:
        spec = task.config[0]["parameters"]["spec"]
        assert spec["widgets"][0]["arrows_only"]
        starts[task.instruction][spec["widgets"][0]["selected"]] += 1
    guessed = sum(counter.most_common(1)[0][1] for counter in starts.values())
    assert len(starts) == NUM_ROWS
    assert guessed / len(BY_FAMILY["menu"]) < 0.35


def test_the_best_blind_click_at_a_colour_is_near_chance():
    """Even the one point that hits most named buttons of all tasks hits few."""
    best = 0
    for x in range(20, SCREEN[0], 20):
        for y in range(40, SCREEN[1], 20):
            best = max(best, sum(_hits_target(task, x, y) for task in BY_FAMILY["colour"]))
    assert best / len(BY_FAMILY["colour"]) < 0.15


def _hits_target(task: Task, x: int, y: int) -> bool:
    spec = task.config[0]["parameters"]["spec"]
    target = next(w for w in spec["widgets"] if w["id"] == task.instruction.split()[2])
    return (
        0 <= x - spec["x"] - target["x"] < target["width"]
        and 0 <= y - spec["y"] - target["y"] < target["height"]
    )
