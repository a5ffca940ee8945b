"""Facts of a turn for rewards: how far the screens lie apart, and what tree and terminal did."""

from dataclasses import replace

from PIL import Image, ImageDraw

from testing.observed_texts import tree as desktop
from testing.observed_texts import widget
from training.contracts.observed_text import MeasuredTurn
from training.contracts.types import Action
from workers.desktops.desktop_texts import DesktopTexts, ReadText
from workers.desktops.frame import Frame
from workers.env.measured_turn import measured_turn, screen_difference

ENTER = Action(kind="key", keys=("Return",))


def screen(white: int = 0, tree: str | None = None, terminal: str | None = None) -> Frame:
    """Black, with `white` columns of white from the left, of 640, and what was read with it."""
    image = Image.new("RGB", (640, 320))
    ImageDraw.Draw(image).rectangle((0, 0, white - 1, 319), fill="white") if white else None
    return replace(Frame.of(image), texts=DesktopTexts(ReadText(tree, ""), ReadText(terminal, "")))


def test_the_difference_of_screens_is_the_share_that_turned_white():
    black = screen()
    assert screen_difference(black, screen()) == 0.0
    assert screen_difference(black, screen(320)) == 0.5
    assert screen_difference(screen(640), black) == 1.0
    assert 0.0 < screen_difference(black, screen(1)) < 0.002


def test_what_was_not_read_is_no_fact():
    assert measured_turn(ENTER, screen(), screen()) == MeasuredTurn(screen_difference=0.0)
    unread = measured_turn(ENTER, screen(tree="<b/>", terminal="$"), screen())
    assert unread == MeasuredTurn(screen_difference=0.0, is_grounded=False, tree_before=4)


def test_tree_and_terminal_are_measured_by_their_raw_texts():
    found = measured_turn(
        ENTER, screen(tree='<b name="Enter"/>', terminal="$ "), screen(64, tree="<b/>é", terminal="$ ls")
    )
    assert found == MeasuredTurn(
        screen_difference=0.1, is_grounded=True, tree_before=17, tree_after=5, terminal_changed=True
    )
    same = measured_turn(None, *[screen(tree="", terminal="")] * 2)
    assert same == MeasuredTurn(
        screen_difference=0.0, is_grounded=False, tree_before=0, tree_after=0, terminal_changed=False
    )


def test_clicks_on_two_rows_of_a_menu_hit_other_widgets():
    """Rows of 20 px, a picture in the lower one."""
    picture = widget("icon", "", (10, 22, 16, 16))
    rows = widget("menu-item", "A", (0, 0, 80, 20)), widget("menu-item", "B", (0, 20, 80, 20), picture)
    menu = desktop(widget("menu", "File", (0, 0, 80, 40), "".join(rows)))

    def at(x: int, y: int, tree: str | None = menu) -> str:
        action = Action(kind="click", x=x, y=y)
        return measured_turn(action, screen(tree=tree), screen()).widgets

    assert at(5, 19) == at(60, 0) != at(5, 20)
    assert at(5, 20) == at(79, 39) != at(80, 39), "its right edge lies beside it"
    assert at(12, 25) != at(5, 25), "the innermost counts"
    assert at(12, 25, None) == at(12, 25, "<no tree") == ""
    assert measured_turn(ENTER, screen(tree=menu), screen()).widgets == ""
