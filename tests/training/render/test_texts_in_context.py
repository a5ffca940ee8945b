"""Trees and terminals in a policy's context: each turn's own, and only while its turn is kept."""

import pytest

from testing.training.tiny_model import renderer
from training.contracts.observed_text import ObservedText
from training.contracts.types import Action, ActionKind, Observation, Task, Trajectory, TrajectoryStatus, Turn
from training.render.history_window import SeenTurn

INSTRUCTIONS = ["Choose row 4.", "", "The last answer held no action."]
TURNS = [
    SeenTurn(text=f"{words}\n\n[Accessibility tree]\nrow {n} 1,{n}") for n, words in enumerate(INSTRUCTIONS)
]


def words(**prompt: object) -> str:
    reader = renderer(observation=["accessibility"], **prompt)
    return reader.tokenizer.decode(reader.context(TURNS).token_ids)


@pytest.mark.parametrize("style", ["first-desk", "computer-use", "tool-call"])
def test_every_turn_shows_its_own_tree(style: str) -> None:
    text = words(style=style)
    places = [text.index(f"[Accessibility tree]\nrow {n} 1,{n}") for n in range(3)]
    assert places == sorted(places)
    assert text.count("row 0") == 1, "the short style repeats the instruction, and no tree with it"


def test_turns_outside_the_window_keep_a_note() -> None:
    text = words(history="window", keep_first_images=0, keep_last_images=1)
    assert "row 0" not in text
    assert "row 1" not in text
    assert "row 2 1,2" in text
    assert text.count("[Accessibility tree]\n(earlier tree and terminal left out)") == 2
    assert text.count("Choose row 4.") == 3


def test_with_a_list_of_actions_the_task_stands_with_the_newest_tree() -> None:
    text = words(style="tool-call", history="actions", keep_last_images=1)
    assert text.index("Choose row 4.") < text.index("row 2 1,2")
    assert "row 0" not in text


def test_a_heading_in_an_instruction_is_left_alone_where_no_text_is_read() -> None:
    turns = [SeenTurn(text="See\n\n[Terminal]\nhere"), SeenTurn(text="")]
    reader = renderer()
    text = reader.tokenizer.decode(reader.context(turns).token_ids)
    assert text.count("See\n\n[Terminal]\nhere") == 2


def test_a_demonstration_is_read_without_what_the_prompt_does_not_read() -> None:
    read = ObservedText(sha256="0" * 64, num_chars=9)
    observation = Observation(
        sha256="", width=9, height=9, accessibility=read, terminal=read,
        text="Go.\n\n[Accessibility tree]\na 1,1\n\n[Terminal]\n$ ls",
    )  # fmt: skip
    turn = Turn(index=0, observation=observation, action=Action(kind=ActionKind.WAIT, seconds=1))
    trajectory = Trajectory(
        trajectory_id=1,
        group_id=1,
        task=Task(task_id="t", instruction="Go."),
        status=TrajectoryStatus.TERMINATED,
        turns=(turn,),
    )

    def shown(*observation: str) -> str:
        reader = renderer(observation=observation)
        return reader.tokenizer.decode(reader.render_trajectory(trajectory).token_ids)

    assert "[Terminal]\n$ ls" in shown("accessibility", "terminal")
    assert "a 1,1<" in shown("accessibility")
    assert "Go.\n\n[Terminal]\n$ ls<" in shown("terminal")
    assert "Go.<" in shown("screenshot")
