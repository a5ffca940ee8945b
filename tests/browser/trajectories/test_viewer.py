"""The trajectory viewer in Chromium: stored ones by keyboard, running ones live and over a lost server."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from testing import first_desk_screens
from testing.browser.people import People, SignIn
from testing.browser.recorded_trajectories import Recorder
from testing.factories import make_experiment, make_group, make_trajectory, make_turn
from testing.paths import REPOSITORY
from training.contracts.turn_trace import TurnPart
from webapp.lib.supervisor.ports import free_port
from webapp.live.broadcast import is_watched
from webapp.trajectories.live_pictures import show_screen
from webapp.trajectories.services.announcements import stream_of


def cells(page: Page) -> list[str]:
    """What the filmstrip holds, in order."""
    return page.locator("[data-filmstrip] [data-cell]").evaluate_all("all => all.map(x => x.dataset.cell)")


def place(page: Page):
    return page.locator("[data-place]")


def shown_frame(page: Page) -> str:
    return page.locator("[data-image] img").get_attribute("src").split("/")[-1].split(".")[0]


def test_the_keyboard_walks_turns_and_the_url_remembers_the_place(sign_in: SignIn, people: People):
    trajectory = make_trajectory(team=people.team, turns=12)
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/#turn=5")
    expect(place(page)).to_have_text("Turn 5 of 12")
    for key, turn in [("j", 6), ("k", 5), ("J", 10), ("K", 5), ("End", 12), ("Home", 1)]:
        page.keyboard.press(key)
        expect(place(page)).to_have_text(f"Turn {turn} of 12")
        expect(page).to_have_url(re.compile(f"#turn={turn}$"))
    page.keyboard.press("4")
    page.keyboard.press(" ")
    expect(place(page)).to_have_text("Turn 12 of 12")
    expect(page.locator("#viewer.is-playing")).to_have_count(0)
    frames = [turn.frame for turn in trajectory.turns.all()]
    assert shown_frame(page) == frames[-1]


def test_the_click_is_drawn_where_it_was_decided(sign_in: SignIn, people: People):
    trajectory = make_trajectory(team=people.team, turns=0)
    make_turn(
        trajectory,
        0,
        action={"kind": "click", "x": 128, "y": 288},
        thought="",
        completion={"text": '{"action": "click", "coordinate": [250, 750]}'},
    )
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/")
    ring = page.locator(".overlay-ring")
    expect(ring).to_be_visible()
    page.wait_for_function("() => document.querySelector('.overlay-ring').getAnimations().length === 0")
    frame, box = page.locator("[data-frame]").bounding_box(), ring.bounding_box()
    across = (box["x"] + box["width"] / 2 - frame["x"]) / frame["width"]
    down = (box["y"] + box["height"] / 2 - frame["y"]) / frame["height"]
    assert (across, down) == pytest.approx((0.25, 0.75), abs=0.01)
    assert "as written: 250, 750" in ring.get_attribute("title")
    page.keyboard.press("o")
    expect(ring).to_be_hidden()


def test_keys_typed_text_and_parse_errors_are_captions_on_the_screen(sign_in: SignIn, people: People):
    trajectory = make_trajectory(team=people.team, turns=0)
    make_turn(trajectory, 0, action={"kind": "key", "keys": ["ctrl", "s"]})
    make_turn(trajectory, 1, action={"kind": "type", "text": "<b>hi</b>\n"})
    make_turn(trajectory, 2, action=None, parse_error="no JSON object")
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/")
    expect(page.locator(".overlay .overlay-key")).to_have_text(["Ctrl", "S"])
    page.keyboard.press("j")
    expect(page.locator(".overlay-typed")).to_have_text("<b>hi</b>⏎")
    page.keyboard.press("j")
    expect(page.locator(".overlay-word")).to_contain_text("could not parse")
    expect(page.locator(".turn-card:visible")).to_contain_text("no JSON object")
    expect(page.locator('[data-cell="2"]')).to_have_class("cell is-parse-error")


def contrasts(places: Locator) -> list[float]:
    """Of their text with what lies behind it, by WCAG 2; colours that are mixed are laid over each other."""
    return places.evaluate_all("""elements => {
      const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      const luminance = (colours) => {
        for (const colour of ["white", ...colours]) {
          canvas.fillStyle = colour;
          canvas.fillRect(0, 0, 1, 1);
        }
        const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((one) => one / 255);
        const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        const [r, g, b] = parts.map(linear);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      return elements.map((element) => {
        const behind = [];
        for (let at = element; at; at = at.parentElement)
          behind.unshift(getComputedStyle(at).backgroundColor);
        const text = luminance([...behind, getComputedStyle(element).color]);
        const back = luminance(behind);
        return (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
      });
    }""")


def test_tokens_show_their_probability_when_asked(sign_in: SignIn, people: People):
    completion = {
        "text": "go",
        "token_ids": [7, 8],
        "token_texts": ["go", " on"],
        "behaviour_logprobs": [-0.01, -5.0],
    }
    trajectory = make_trajectory(team=people.team, turns=0)
    make_turn(trajectory, 0, completion=completion)
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/")
    unlikely = page.locator(".completion-tokens .heat-5")
    expect(unlikely).to_be_hidden()
    page.keyboard.press("t")
    expect(unlikely).to_have_text("on")
    assert "0.7 %" in unlikely.get_attribute("title")
    expect(page.locator(".completion-tokens .token-number")).to_have_text("0.7 %")
    expect(page.get_by_role("button", name="Least certain: “on” 0.7 %")).to_be_visible()
    page.keyboard.press("T")
    expect(page.locator(".token.is-found")).to_have_text("on")
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.bsTheme = theme", theme)
        assert min(contrasts(page.locator(".heat-legend .token"))) >= 4.5


def test_alternatives_of_a_token_are_shown_on_hover_and_by_keyboard(sign_in: SignIn, people: People):
    completion = {
        "text": "go <i>\n",
        "token_ids": [7, 8, 9],
        "token_texts": ["go", " <i>", "\n"],
        "behaviour_logprobs": [-0.01, -5.0, -0.7],
        "alternatives": {
            "token_ids": [[7, 1], [2, 3], [9, 1]],
            "texts": [["go", "up"], [" <b>", ""], ["\n", "up"]],
            "logprobs": [[-0.01, -4.0], [-0.2, -1.8], [-0.7, -0.75]],
        },
    }
    trajectory = make_trajectory(team=people.team, turns=0)
    make_turn(trajectory, 0, completion=completion)
    make_turn(trajectory, 1, completion={"text": "old", "token_ids": [4], "token_texts": ["old"]})
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{trajectory.pk}/")
    page.keyboard.press("t")
    card = page.locator("[data-card='0']")
    panel = card.get_by_role("status")
    tokens = card.locator(".completion-tokens .token")
    tokens.nth(0).hover()
    expect(panel).to_have_text("Likeliest at go:go 99.0 %, sampledup 1.8 %")
    page.keyboard.press("T")
    expect(tokens.nth(1)).to_be_focused()
    expect(panel).to_have_text("Likeliest at  <i>: <b> 81.9 %⏹ 16.5 %")
    page.keyboard.press("ArrowRight")
    expect(tokens.nth(2)).to_be_focused()
    expect(panel.locator("li")).to_have_text(["⏎ 49.7 %, sampled", "up 47.2 %"])
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(tokens.nth(0)).to_be_focused()
    assert card.locator(".token[tabindex='0']").all_inner_texts() == ["go"]
    page.keyboard.press("j")
    old = page.locator("[data-card='1']")
    expect(old.locator(".completion-tokens .token")).to_have_text("old")
    expect(old.get_by_role("status")).to_be_hidden()
    expect(old.locator("[tabindex]")).to_have_count(0)


def test_siblings_and_groups_are_one_key_away(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team)
    groups = [make_group(experiment=experiment) for _ in range(2)]
    first, second = (make_trajectory(group=groups[0], turns=4, member=member) for member in range(2))
    other = make_trajectory(group=groups[1], turns=2)
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{first.pk}/#turn=3")
    page.keyboard.press("l")
    page.wait_for_url(f"**/trajectories/{second.pk}/#turn=3")
    expect(place(page)).to_have_text("Turn 3 of 4")
    page.keyboard.press("h")
    page.wait_for_url(f"**/trajectories/{first.pk}/#turn=3")
    expect(place(page)).to_have_text("Turn 3 of 4")
    page.keyboard.press("]")
    page.wait_for_url(f"**/trajectories/{other.pk}/")
    expect(place(page)).to_have_text("Turn 1 of 2")
    page.keyboard.press("[")
    page.wait_for_url(f"**/trajectories/{first.pk}/")


def test_a_running_trajectory_grows_live_can_be_scrubbed_and_ends_with_its_reward(
    sign_in: SignIn, people: People
):
    group = make_group(experiment=make_experiment(team=people.team))
    recorder, sibling = Recorder(group), Recorder(group, member=1)
    recorder.turn()
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{recorder.trajectory.pk}/")
    expect(page.locator("#viewer.is-following")).to_be_visible()

    seen = recorder.open_turn()
    expect(place(page)).to_have_text("Turn 2 of 2")
    expect(page.locator(f'[data-image] img[src*="{seen.sha256}"]')).to_be_visible()
    expect(page.locator(".turn-card:visible")).to_contain_text("The policy is deciding")
    recorder.close_turn(seen, {TurnPart.REPORT: 40.0, TurnPart.DECODE: 150.0, TurnPart.ACT: 10.0})
    expect(page.locator(".turn-card:visible")).to_contain_text("thought of turn 2")
    bar = page.locator(".turn-card:visible").get_by_role("img", name="200 ms in all")
    decode, whole = bar.locator(".is-decode").bounding_box(), bar.bounding_box()
    assert decode["width"] == pytest.approx(0.75 * whole["width"], abs=3)
    expect(page.locator(".overlay .overlay-key")).to_have_text("↓")

    page.keyboard.press("Home")
    recorder.turn()
    sibling.turn()
    expect(place(page)).to_have_text("Turn 1 of 3")
    expect(page.locator(f'[data-sibling="{sibling.trajectory.pk}"] .lane-cell')).to_have_count(1)
    page.get_by_role("button", name="Jump to live").click()
    expect(place(page)).to_have_text("Turn 3 of 3")

    recorder.end(score=1.0)
    expect(page.locator("[data-figures] [data-status=terminated]").first).to_be_visible()
    expect(page.locator("[data-reward]")).to_contain_text("task_score")
    expect(page.locator(".waterfall-total")).to_contain_text("+1.00")
    assert cells(page) == ["0", "1", "2"]


def test_a_screen_is_seen_before_its_turn_is_recorded_and_goes_when_it_never_is(
    sign_in: SignIn, people: People
):
    recorder = Recorder(make_group(experiment=make_experiment(team=people.team)))
    recorder.turn()
    page = sign_in(people.viewer)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"/trajectories/{recorder.trajectory.pk}/")
    expect(page.locator("#viewer.is-following")).to_be_visible()
    stream = stream_of(recorder.trajectory.pk)
    while not is_watched(stream):
        page.wait_for_timeout(20)

    def send_screen(index: int) -> str:
        png = first_desk_screens.menu_screen(index)
        sha256, pk = hashlib.sha256(png).hexdigest(), recorder.trajectory.pk
        image = Image.open(BytesIO(png))
        show_screen(
            trajectory_id=pk, index=index, sha256=sha256, png=png, image=image, observed_at=time.time()
        )
        return sha256

    sha = send_screen(1)
    expect(place(page)).to_have_text("Turn 2 of 2")
    expect(page.locator('[data-image] img[src^="blob:"]')).to_be_visible()
    seen = recorder.open_turn()
    assert seen.sha256 == sha
    expect(page.locator(".turn-card:visible")).to_contain_text("The policy is deciding")
    expect(place(page)).to_have_text("Turn 2 of 2")
    assert not [url for url in asked if f"/frames/{sha}.png" in url], "the picture was there already"
    recorder.close_turn(seen)

    send_screen(2)
    expect(place(page)).to_have_text("Turn 3 of 3")
    recorder.end(score=1.0)
    expect(page.locator(".waterfall-total")).to_contain_text("+1.00")
    expect(place(page)).to_contain_text("of 2")


@dataclass
class OwnServer:
    """A uvicorn that a test may kill and start again on the same port."""

    environment: dict[str, str]
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(self.port)]
        self.process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{self.url}/healthz", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def own_server(
    transactional_db: None, child_environment: dict[str, str], collected_static: None
) -> Iterator[OwnServer]:
    server = OwnServer(child_environment)
    server.start()
    yield server
    server.kill()


def test_after_a_killed_server_the_viewer_catches_up_with_nothing_missed_and_nothing_twice(
    sign_in: SignIn, people: People, own_server: OwnServer, browser
):
    recorder = Recorder(make_group(experiment=make_experiment(team=people.team)))
    recorder.turn()
    signed_in = sign_in(people.viewer)  # its cookie counts for the host, whatever the port
    context = browser.new_context(storage_state=signed_in.context.storage_state())
    page = context.new_page()
    page.goto(f"{own_server.url}/trajectories/{recorder.trajectory.pk}/")
    expect(page.locator("#viewer.is-following")).to_be_visible()
    page.evaluate(
        """() => {
            window.added = [];
            new MutationObserver((changes) => {
                for (const change of changes)
                    for (const node of change.addedNodes)
                        if (node.dataset && !change.removedNodes.length) window.added.push(node.dataset.cell);
            }).observe(document.querySelector("[data-filmstrip]"), { childList: true });
        }"""
    )
    recorder.turn()
    expect(place(page)).to_have_text("Turn 2 of 2")

    own_server.kill()
    expect(page.locator("#viewer.is-reconnecting [data-live-label]")).to_have_text("Reconnecting")
    recorder.turn()
    seen = recorder.open_turn()
    own_server.start()
    expect(page.locator("#viewer.is-following")).to_be_visible()
    expect(place(page)).to_have_text("Turn 4 of 4")
    recorder.close_turn(seen)
    recorder.turn(action=None, parse_error="no action")
    expect(page.locator('[data-cell="4"]')).to_have_class("cell is-parse-error")
    assert cells(page) == ["0", "1", "2", "3", "4"]
    assert page.evaluate("window.added.filter((x, i, all) => all.indexOf(x) !== i)") == []
    expect(page.locator('[data-card="3"]')).to_have_count(1)
    context.close()
