"""Every kind of action does on a real desktop what its name says, at the pixel that it names."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from training.contracts.types import Action
from workers.desktops import frame_images
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.frame import Frame
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.screen_settling import AT_ONCE, Pace, SettleLimits, wait_until_settled
from workers.desktops.x11.xtest_input import ActionRefused

pytestmark = pytest.mark.desktop
PATIENCE_S = 60
T = TypeVar("T")

PANEL = {
    "title": "Order form",
    "x": 40,
    "y": 40,
    "width": 420,
    "height": 300,
    "background": "#eef1f4",
    "widgets": [
        {"id": "dish", "kind": "list", "x": 12, "y": 44, "width": 200, "height": 180,
         "rows": ["Soup", "Salad", "Bread", "Fish"], "selected": 1},
        {"id": "name", "kind": "entry", "text": "", "x": 224, "y": 44, "width": 184, "height": 36},
        {"id": "red", "kind": "button", "text": "Red", "color": "#d32f2f",
         "x": 224, "y": 96, "width": 84, "height": 60},
        {"id": "green", "kind": "button", "text": "Green", "color": "#2e7d32",
         "x": 324, "y": 96, "width": 84, "height": 60},
        {"id": "title", "kind": "label", "text": "Pick a dish", "x": 12, "y": 8, "width": 200, "height": 30},
        {"id": "ok", "kind": "button", "text": "OK", "x": 324, "y": 240, "width": 84, "height": 44},
    ],
    "close_on": ["ok"],
}  # fmt: skip


def open_panel(desktop: DesktopEnv, spec: dict = PANEL) -> tuple[int, int]:
    """Show a panel; the screen place of its content."""
    desktop.agent.put("~/spec.json", json.dumps(spec).encode())
    desktop.agent.launch(["deskhand-panel", "~/spec.json", "~/result.json"])
    window = desktop.wait_for_window(spec["title"])
    return window.x, window.y


def eventually(read: Callable[[], T], is_wanted: Callable[[T], bool]) -> T:
    """The first answer that is wanted, or the last one: settling gives up early on a busy machine."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_wanted(answer := read()) and time.monotonic() < deadline:
        pass
    return answer


def result(desktop: DesktopEnv, key: str, expected: object) -> object:
    """What the panel tells under `key` as soon as it is as expected."""

    def read() -> object:
        desktop.observe()
        return json.loads(desktop.agent.get("~/result.json"))[key]

    return eventually(read, lambda found: found == expected)


def changed_from(desktop: DesktopEnv, before: Frame) -> bool:
    """The screen does not stay as it was."""
    wanted = eventually(desktop.observe, lambda now: now.raw_digest != before.raw_digest)
    return wanted.raw_digest != before.raw_digest


def open_editor(desktop: DesktopEnv, text: str) -> None:
    desktop.agent.put("~/note.txt", text.encode())
    desktop.agent.launch(["mousepad", f"{desktop.home}/note.txt"])
    desktop.wait_for_window("Mousepad")


def saved_text(desktop: DesktopEnv, expected: str) -> str:
    """Save, then what the file holds as soon as it is as expected."""
    desktop.act(Action(kind="key", keys=("ctrl", "s")))

    def read() -> str:
        desktop.observe()
        return desktop.agent.get("~/note.txt").decode().removesuffix("\n")  # the editor adds a newline

    return eventually(read, lambda text: text == expected)


@pytest.mark.parametrize(
    ("dx", "dy", "pressed"),
    [(224, 96, ["red"]), (307, 155, ["red"]), (223, 120, []), (308, 120, []), (324, 96, ["green"])],
    ids=["first pixel", "last pixel", "one left of it", "one right of it", "first pixel of the next"],
)
def test_a_click_hits_exactly_the_pixel_that_it_names(desktop, dx, dy, pressed):
    x, y = open_panel(desktop)
    desktop.act(Action(kind="click", x=x + dx, y=y + dy))
    assert result(desktop, "pressed", pressed) == pressed


def test_a_panel_is_driven_by_keyboard_alone(desktop):
    open_panel(desktop)
    for keys in (("Down",), ("Down",), ("Up",)):
        desktop.act(Action(kind="key", keys=keys))
    assert result(desktop, "selected", {"dish": 2}) == {"dish": 2}
    desktop.act(Action(kind="key", keys=("tab",)))
    desktop.act(Action(kind="type", text="Zoë & 2 <b>"))
    expected = {"name": "Zoë & 2 <b>"}
    assert result(desktop, "fields", expected) == expected
    desktop.act(Action(kind="key", keys=("tab",)))
    desktop.act(Action(kind="key", keys=("enter",)))
    desktop.act(Action(kind="key", keys=("right",)))
    desktop.act(Action(kind="key", keys=("space",)))
    assert result(desktop, "pressed", ["red", "green"]) == ["red", "green"]


def test_a_panel_closes_on_the_widgets_that_its_spec_names(desktop):
    x, y = open_panel(desktop)
    desktop.act(Action(kind="click", x=x + 340, y=y + 250))
    assert result(desktop, "closed_by", "ok") == "ok"
    assert eventually(desktop.windows, lambda windows: windows == []) == []


def test_return_in_a_list_submits_and_a_click_selects_its_row(desktop):
    x, y = open_panel(desktop, {**PANEL, "close_on": ["submit"]})
    desktop.act(Action(kind="click", x=x + 100, y=y + 44 + 160))
    assert result(desktop, "selected", {"dish": 3}) == {"dish": 3}
    desktop.act(Action(kind="key", keys=("Return",)))
    assert result(desktop, "closed_by", "submit") == "submit"


def test_the_highlighted_row_is_a_large_area_of_one_colour(desktop):
    x, y = open_panel(desktop)
    image = desktop.observe().image()
    menu = image.crop((x + 12, y + 44, x + 212, y + 44 + 180))
    row = menu.resize((1, 4), 4)  # box filter: row averages
    blues = [row.getpixel((0, n))[0] < 120 for n in range(4)]
    assert blues == [False, True, False, False]


def test_a_broken_panel_spec_is_reported_and_shows_nothing(desktop):
    desktop.agent.put("~/bad.json", b'{"widgets": [{"kind": "button"}]}')
    run = desktop.agent.execute(
        "cd /opt/deskhand && /usr/bin/python3 -s -m workers.guest.task_form_window ~/bad.json ~/r.json",
        shell=True,
    )
    assert run.returncode == 2
    assert "KeyError" in run.error
    assert desktop.windows() == []


def test_typing_is_lossless_for_long_and_unusual_text(desktop):
    open_editor(desktop, "")
    text = (
        "".join(f"{n}: The quick brown fox, {n * 7}% of {{it}} @home~`|#\n" for n in range(8)) + "é漢字Ω€ßÅ"
    )
    desktop.act(Action(kind="type", text=text))
    assert saved_text(desktop, text) == text


def test_more_unusual_characters_than_spare_keys_are_typed_in_batches(desktop):
    open_editor(desktop, "")
    text = "".join(chr(0x4E00 + n) for n in range(50))
    desktop.act(Action(kind="type", text=text))
    assert saved_text(desktop, text) == text


def test_key_chords_reach_the_program(desktop):
    open_editor(desktop, "one two")
    desktop.act(Action(kind="key", keys=("ctrl", "End")))
    desktop.act(Action(kind="key", keys=("ctrl", "shift", "Left")))
    desktop.act(Action(kind="type", text="2"))
    assert saved_text(desktop, "one 2") == "one 2"


def test_double_and_triple_click_select_word_and_line(desktop):
    open_editor(desktop, "alpha beta gamma")
    window = desktop.windows()[0]
    place = {"x": window.x + 20, "y": window.y + 38}
    desktop.act(Action(kind="double_click", **place))
    desktop.act(Action(kind="type", text="A"))
    assert saved_text(desktop, "A beta gamma") == "A beta gamma"
    time.sleep(0.5)  # beyond the toolkit's double-click time, or the next clicks would be the third to fifth
    desktop.act(Action(kind="triple_click", **place))
    desktop.act(Action(kind="type", text="B"))
    assert saved_text(desktop, "B") == "B"


def test_a_drag_selects_text_and_moves_a_window(desktop):
    open_editor(desktop, "alpha beta gamma")
    window = desktop.windows()[0]
    desktop.act(Action(kind="drag", x=window.x + 4, y=window.y + 38, to_x=window.x + 400, to_y=window.y + 38))
    desktop.act(Action(kind="type", text="C"))
    assert saved_text(desktop, "C") == "C"
    desktop.agent.launch(["xterm", "-geometry", "20x5+200+200"])
    before = desktop.wait_for_window("xterm")
    title = before.y - 9
    desktop.act(Action(kind="drag", x=before.x + 40, y=title, to_x=before.x - 20, to_y=title - 50))
    wanted = (before.x - 60, before.y - 50)
    after = eventually(lambda: desktop.wait_for_window("xterm"), lambda now: (now.x, now.y) == wanted)
    assert (after.x, after.y) == wanted


def test_the_right_button_opens_a_menu_and_escape_closes_it(desktop):
    open_editor(desktop, "text")
    before = desktop.observe()
    desktop.act(Action(kind="right_click", x=200, y=200))
    assert changed_from(desktop, before)
    with_menu = desktop.observe(SettleLimits())
    desktop.act(Action(kind="key", keys=("esc",)))
    assert changed_from(desktop, with_menu)


def test_the_wheel_scrolls_down_and_back_up(desktop):
    open_editor(desktop, "\n".join(str(n) for n in range(200)))
    desktop.act(Action(kind="move", x=200, y=200))
    top = desktop.observe()
    desktop.act(Action(kind="scroll", x=200, y=200, scroll_y=5))
    assert changed_from(desktop, top)
    desktop.act(Action(kind="scroll", x=200, y=200, scroll_y=-5))
    again = eventually(desktop.observe, lambda now: now.raw_digest == top.raw_digest)
    assert again.raw_digest == top.raw_digest


def test_the_middle_button_pastes_the_selection(desktop):
    open_editor(desktop, "word")
    desktop.act(Action(kind="key", keys=("ctrl", "a")))
    x, y = open_panel(desktop)
    desktop.act(Action(kind="middle_click", x=x + 300, y=y + 60))
    assert result(desktop, "fields", {"name": "word"}) == {"name": "word"}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Action(kind="click", x=512, y=10), r"\(512, 10\) is off the screen of 512 x 384"),
        (Action(kind="click", x=-1, y=10), "off the screen"),
        (Action(kind="click", x=5), "x and y must be given together"),
        (Action(kind="drag", x=1, y=1), "needs to_x and to_y"),
        (Action(kind="drag", x=1, y=1, to_x=900, to_y=1), "off the screen"),
        (Action(kind="key", keys=("ctrl", "nosuchkey")), "no key named 'nosuchkey'"),
        (Action(kind="key"), "at least one key"),
    ],
)
def test_an_impossible_action_is_refused_and_nothing_happens(desktop, action, message):
    before = desktop.observe()
    with pytest.raises(ActionRefused, match=message) as caught:
        desktop.act(action)
    assert caught.value.kind is ErrorKind.TASK
    assert desktop.observe().raw_digest == before.raw_digest


def test_a_frame_is_a_lossless_deterministic_png_of_the_screen(desktop):
    first, second = desktop.observe(), desktop.observe()
    assert first.sha256 == second.sha256 == frame_images.sha256(first.png)
    image = first.image()
    assert image.size == (512, 384) == (first.width, first.height)
    assert image.getpixel((3, 3)) == (0x2F, 0x5D, 0x7C)
    assert first.taken_monotonic_s <= second.taken_monotonic_s


def test_observing_after_a_click_waits_for_the_reaction(desktop):
    x, y = open_panel(desktop)
    before = desktop.observe()
    desktop.act(Action(kind="click", x=x + 230, y=y + 100))
    after = desktop.observe(SettleLimits(first_change_s=PATIENCE_S, limit_s=PATIENCE_S))
    assert after.raw_digest != before.raw_digest, "the pressed button shows the focus"


class ScriptedScreen:
    """A screen whose windows of watching are given: (was something drawn, CPU seconds used)."""

    pace = Pace()

    def __init__(self, windows: list[tuple[bool, float]]) -> None:
        self.windows = windows
        self.used_s = 0.0
        self.watched = 0

    def wait_change(self, timeout_s: float) -> bool:
        time.sleep(min(timeout_s, 0.001))
        drawn, used_s = self.windows[min(self.watched, len(self.windows) - 1)]
        self.used_s += used_s
        self.watched += 1
        return drawn

    def cpu_s(self) -> float:
        return self.used_s


CALM, DRAWN, WORKING = (False, 0.0), (True, 0.002), (False, 0.010)
AT_REST_AFTER = SettleLimits(first_change_s=0.0, quiet_s=0.002, limit_s=1.0)


def test_settling_needs_the_whole_quiet_time_after_the_last_drawing():
    screen = ScriptedScreen([DRAWN, CALM, DRAWN, CALM, CALM])
    assert wait_until_settled(screen, AT_REST_AFTER) is True
    assert screen.watched == 5


def test_settling_waits_for_a_program_that_works_without_drawing_yet():
    screen = ScriptedScreen([WORKING] * 20 + [DRAWN, CALM, CALM])
    assert wait_until_settled(screen, AT_REST_AFTER) is True
    assert screen.watched == 23


def test_settling_without_any_reaction_gives_up_and_says_that_nothing_changed():
    screen = ScriptedScreen([CALM])
    assert wait_until_settled(screen, AT_REST_AFTER) is False
    assert screen.watched == 2
    assert wait_until_settled(screen, AT_ONCE) is False
    assert screen.watched == 2, "at once means without looking"


@pytest.mark.parametrize("window", [DRAWN, WORKING], ids=["always drawing", "always computing"])
def test_settling_gives_up_on_a_screen_that_never_rests(window):
    screen = ScriptedScreen([window])
    assert wait_until_settled(screen, SettleLimits(quiet_s=0.002, limit_s=0.03)) is window[0]
    assert screen.watched > 2


def test_a_missing_window_is_reported_with_those_that_are_there(desktop):
    open_panel(desktop)
    with pytest.raises(EnvError, match="no window 'Nothing' after 0.2 s; windows: 'Order form'") as caught:
        desktop.wait_for_window("Nothing", timeout_s=0.2)
    assert caught.value.kind is ErrorKind.GUEST


def active(desktop: DesktopEnv) -> list[str]:
    return [window.title for window in desktop.windows() if window.is_active]


def test_windows_are_activated_and_closed_by_title(desktop):
    desktop.agent.launch(["xterm", "-T", "first"])
    desktop.wait_for_window("first")
    desktop.agent.launch(["xterm", "-T", "second"])
    desktop.wait_for_window("second")
    assert desktop.activate_window("first")
    assert eventually(lambda: active(desktop), lambda titles: titles == ["first"]) == ["first"]
    assert desktop.close_window("second")
    assert not desktop.close_window("third")
    left = eventually(desktop.windows, lambda windows: len(windows) == 1)
    assert [window.title for window in left] == ["first"]


def test_large_screens_work_too(desk_client):
    from workers.desktops.contract import DesktopSpec

    lease = desk_client.acquire("x11", DesktopSpec(width=1280, height=720), holder="large", ttl_s=60)
    with DesktopEnv(desk_client, lease) as env:
        assert env.observe().image().size == (1280, 720)
        env.act(Action(kind="move", x=1279, y=719))
        pointer = env.console.display.root.query_pointer()
        assert (pointer.root_x, pointer.root_y) == (1279, 719)
    desk_client.destroy(lease.desktop.desktop_id)
