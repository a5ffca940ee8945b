"""Which turns of siblings began in the same state."""

from itertools import permutations

import pytest

from testing.training.sample_values import make_turn
from training.contracts.observed_text import MeasuredTurn
from training.contracts.screen_state import START, UNSHARED, states_by_history, states_of_members
from training.contracts.types import Action, ActionKind, Observation, Turn

ENTER, ESCAPE = (Action(kind=ActionKind.KEY, keys=(key,)) for key in ("Return", "Escape"))
WAIT = Action(kind=ActionKind.WAIT, seconds=1)


def turn(index: int, screen: str, action: Action | None, **more: object) -> Turn:
    seen = Observation(sha256=screen * 64 if screen else "", width=8, height=8, text="")
    return make_turn(index=index, action=action, observation=seen, **more)


def states(*turns: tuple[str, Action | None], earlier: tuple[Action, ...] = ()) -> list[str]:
    made = [
        turn(index, *one, earlier_actions=earlier if index == 0 else ()) for index, one in enumerate(turns)
    ]
    return states_of_members({0: made}, shows_screen=True)[0]


def click(x: int, y: int, **more: object) -> Action:
    return Action(kind=more.pop("kind", ActionKind.CLICK), x=x, y=y, **more)


def behind(*first: Action, widgets: tuple[str, ...] = (), screens: str = "") -> list[int]:
    """Of siblings that began with these actions: numbers of the states behind, equal = shared."""
    members = {
        key: (
            turn(0, "a", action, measured=MeasuredTurn(widgets=widgets[key] if widgets else "")),
            turn(1, screens[key] if screens else "b", None),
        )
        for key, action in enumerate(first)
    }
    found = states_of_members(members, shows_screen=True)
    kinds = list(dict.fromkeys(found[key][1] for key in members))
    return [kinds.index(found[key][1]) for key in members]


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
    assert states_by_history({}, {}) == {}
    assert states_by_history({1: []}, {1: []}) == {1: []}
    assert states(("", ENTER)) == [START]


def test_near_clicks_to_the_same_screen_are_one_move() -> None:
    here = click(100, 100)
    assert behind(here, click(106, 94)) == [0, 0]
    assert behind(here, click(107, 100)) == behind(here, click(100, 93)) == [0, 1]
    assert behind(here, click(101, 100), screens="bc") == [0, 1]
    assert behind(here, click(101, 100, modifiers=("ctrl",))) == [0, 1]
    assert behind(here, click(101, 100, kind=ActionKind.RIGHT_CLICK)) == [0, 1]
    drags = [Action(kind=ActionKind.DRAG, x=x, y=9, to_x=50, to_y=9) for x in (9, 10)]
    assert behind(*drags) == [0, 1], "its way is what a drag does"


def test_a_near_click_before_another_action_is_another_move() -> None:
    one, other = (states(("a", ENTER), ("b", None), earlier=(click(x, 100),)) for x in (100, 101))
    assert one != other


def test_a_chain_of_near_clicks_does_not_cross_rows() -> None:
    """Whatever the order of siblings: the first two, from the left, are as far apart as clicks may be."""
    chain = [click(100, 100), click(106, 100), click(112, 100)]
    for order in permutations(range(3)):
        found = behind(*(chain[place] for place in order))
        number = dict(zip(order, found, strict=True))
        assert number[0] == number[1] != number[2]


def test_rows_of_a_menu_that_any_click_closes_stay_apart_where_the_tree_is_known() -> None:
    """Rows of 20 px with their border at 120; both lead back to the same desktop."""
    rows = click(100, 118), click(100, 122)
    assert behind(*rows, widgets=("upper", "lower")) == [0, 1]
    assert behind(*rows, widgets=("upper", "upper")) == [0, 0]
    assert behind(*rows) == [0, 0], "without a tree they are taken for one: that close, no pixel says more"


def test_behind_near_clicks_what_is_done_next_counts() -> None:
    rows = {
        key: [turn(0, "a", click(100 + key, 100)), turn(1, "b", then), turn(2, "c", None)]
        for key, then in enumerate((ENTER, ENTER, ESCAPE))
    }
    first, second, third = states_of_members(rows, shows_screen=True).values()
    assert first == second
    assert (first[1], first[2] == third[2]) == (third[1], False)
