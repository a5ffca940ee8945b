"""Which turns of siblings began in the same state."""

import pytest

from testing.training.sample_values import make_turn
from training.contracts.screen_state import START, UNSHARED, states_by_history, states_of_turns
from training.contracts.types import Action, ActionKind, Observation

ENTER, ESCAPE = (Action(kind=ActionKind.KEY, keys=(key,)) for key in ("Return", "Escape"))
WAIT = Action(kind=ActionKind.WAIT, seconds=1)


def states(*turns: tuple[str, Action | None], earlier: tuple[Action, ...] = ()) -> list[str]:
    made = [
        make_turn(
            index=index,
            action=action,
            earlier_actions=earlier if index == 0 else (),
            observation=Observation(sha256=screen * 64 if screen else "", width=8, height=8, text=""),
        )
        for index, (screen, action) in enumerate(turns)
    ]
    return states_of_turns(made, shows_screen=True)


def test_the_same_screen_behind_another_key_is_another_state() -> None:
    right, wrong = (states(("a", None), ("b", key), ("a", None)) for key in (ENTER, ESCAPE))
    assert right[:2] == wrong[:2]
    assert right[2] != wrong[2]
    assert START not in (right[2], wrong[2]), "the first screen is back, and what was done stays"


def test_what_was_done_long_ago_still_tells_states_apart() -> None:
    right, wrong = (
        states(("a", key), ("c", ENTER), ("c", None), ("d", ENTER), ("e", None)) for key in (ENTER, ESCAPE)
    )
    assert not set(right[1:]) & set(wrong[1:])


def test_all_actions_of_a_turn_count() -> None:
    one = states(("a", ENTER), ("b", None))
    assert one[1] != states(("a", ENTER), ("b", None), earlier=(ESCAPE,))[1]
    assert one == states(("a", ENTER), ("b", None), earlier=(WAIT,))


@pytest.mark.parametrize("nothing", [None, WAIT])
def test_a_turn_that_does_and_changes_nothing_leaves_the_state(nothing: Action | None) -> None:
    first, second, third, fourth = states(("a", ENTER), ("b", nothing), ("b", nothing), ("c", None))
    assert second == third != first
    assert fourth not in (third, UNSHARED)
    assert states(("a", nothing), ("a", None)) == [START, START]


def test_a_key_without_a_visible_effect_may_have_one() -> None:
    assert states(("a", ENTER), ("a", None))[1] != START


def test_nothing_is_shared_behind_a_screen_that_is_not_known() -> None:
    assert states(("a", ENTER), ("", ENTER), ("b", ENTER))[1:] == [UNSHARED, UNSHARED]
    assert states_by_history([], []) == []
    assert states(("", ENTER)) == [START]
