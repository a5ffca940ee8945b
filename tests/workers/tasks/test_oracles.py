"""On real desktops: every family's oracle scores 1.0, doing nothing 0.0, and wrong answers 0.0."""

import subprocess
import sys

import pytest

from testing.workers.prove_task import prove
from testing.workers.short_episodes import click, key, play, typed
from tests.workers.conftest import ROOT
from training.content.task_sets.first_desk import COLOURS, FAMILIES, family_tasks
from training.content.task_sets.first_desk.level_4 import LEVEL_4_FAMILIES
from training.contracts.types import Action, Observation, Task, Turn
from workers.tasks import prepare_and_score
from workers.tasks.errors import OracleError
from workers.tasks.oracles import next_action, solution

NUM_VARIANTS = 5
"""Of each family; the slow test proves all."""
FAMILY = {family.name: list(family_tasks(family)) for family in (*FAMILIES, *LEVEL_4_FAMILIES)}

pytestmark = pytest.mark.desktop


@pytest.mark.parametrize("family", FAMILY)
def test_the_oracle_scores_1_and_doing_nothing_0_from_the_same_first_frame(family, desktop):
    tasks = FAMILY[family]
    spread = [tasks[len(tasks) * index // NUM_VARIANTS] for index in range(NUM_VARIANTS)]
    proofs = [prove(task, desktop) for task in spread]
    assert [proof for proof in proofs if not proof.holds or len(proof.first_frames) > 1] == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_task_of_first_desk_holds():
    done = subprocess.run(
        [sys.executable, "scripts/prove_tasks.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("family", ["colour", "form"])
def test_widgets_are_exactly_where_the_task_says(family, desktop):
    for task in FAMILY[family][:5]:
        desktop.reset()
        prepare_and_score.setup(task, desktop)
        for widget in task.oracle["widgets"]:
            color = COLOURS.get(widget["name"].split()[0], "#ffffff")
            assert desktop.console.color_at(widget["x"], widget["y"]) == color


def test_the_wrong_row_scores_0(desktop):
    task = next(task for task in FAMILY["menu"] if len(task.oracle["actions"]) > 2)
    assert play(task, desktop, [key("Return")]) == 0.0


def test_a_menu_without_return_scores_0(desktop):
    task = FAMILY["menu"][0]
    assert play(task, desktop, list(solution(task))[:-2]) == 0.0


def test_keys_that_jump_and_clicks_do_not_move_a_menu(desktop):
    """Otherwise a blind agent would find a known row."""
    task = next(task for task in FAMILY["menu"] if task.instruction == "Choose row 1.")
    row = task.oracle["widgets"][0]
    highlighted = task.config[0]["parameters"]["spec"]["widgets"][0]["selected"]
    assert highlighted != 0
    for action in (key("Home"), key("Page_Up"), click(row["x"], row["y"])):
        assert play(task, desktop, [action, key("Return")]) == 0.0


def test_other_words_score_0(desktop):
    assert play(FAMILY["note"][0], desktop, [typed("purple emu"), key("ctrl", "s")]) == 0.0


def test_an_unsaved_note_scores_0(desktop):
    task = FAMILY["note"][0]
    assert play(task, desktop, [solution(task)[0]]) == 0.0


def test_a_note_with_a_final_newline_scores_1(desktop):
    task = FAMILY["note"][0]
    assert play(task, desktop, [typed(solution(task)[0].text + "\n"), key("ctrl", "s")]) == 1.0


def test_the_wrong_colour_scores_0(desktop):
    task = FAMILY["colour"][0]
    target = task.instruction.split()[2]
    other = next(w for w in task.oracle["widgets"] if not w["name"].startswith(target))
    assert play(task, desktop, [click(other["x"], other["y"])]) == 0.0


def test_the_keyboard_presses_no_coloured_button(desktop):
    """Pointing tasks need the pointer: Return on a focused button would be a blind lottery."""
    task = FAMILY["colour"][0]
    assert play(task, desktop, [key("Tab"), key("Return"), key("space")]) == 0.0


def test_the_right_button_without_the_word_scores_0(desktop):
    task = FAMILY["form"][0]
    assert play(task, desktop, [solution(task)[1]]) == 0.0


def test_giving_up_on_a_solved_task_scores_0(desktop):
    task = FAMILY["colour"][0]
    assert play(task, desktop, [solution(task)[0]], last=Action(kind="terminate", status="failure")) == 0.0


def test_an_oracle_stops_when_the_desktop_refuses_it():
    task = FAMILY["colour"][0]
    turn = Turn(
        index=0,
        observation=Observation(sha256="", width=512, height=384),
        action=solution(task)[0],
        action_error="off screen",
    )
    with pytest.raises(OracleError, match="the desktop refused the oracle: off screen"):
        next_action(task, [turn])


def test_an_oracle_has_no_action_after_its_script():
    task = FAMILY["colour"][0]
    turn = Turn(index=0, observation=Observation(sha256="", width=512, height=384))
    with pytest.raises(OracleError, match="2 actions are used up"):
        next_action(task, [turn, turn])


def test_a_task_without_oracle_says_so():
    with pytest.raises(OracleError, match="t has no oracle"):
        next_action(Task(task_id="t", instruction=""), [])
