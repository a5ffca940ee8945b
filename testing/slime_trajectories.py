"""Ten trajectories by which `slime-osworld.v2` is held against Slime-OSWorld's own code, played on desktops.

Every completion is in the form that both read: a `<tool_call>` of computer_use with pixels of the screen.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple, cast

from training.actions.coordinates import off_screen_error
from training.actions.parse_completion import parse_completion
from training.content.task_sets.first_desk import generate
from training.contracts.config import CoordinateSpace
from training.contracts.types import ActionKind, Observation, Turn
from workers.desktops.agent_client import AgentClient
from workers.desktops.desktop_texts import DesktopTexts, ReadText
from workers.desktops.frame import Frame
from workers.desktops.leased_desktop import DesktopEnv
from workers.env.measured_turn import measured_turn
from workers.tasks import prepare_and_score

TASKS = {task.task_id: task for task in generate()}
NOTE, COLOUR, MENU = (f"first-desk/{family}/0000" for family in ("note", "colour", "menu"))
MAX_TURNS = 8
SHELL = """import gi; gi.require_version('Gtk', '3.0'); gi.require_version('Atk', '1.0')
from gi.repository import Atk, Gtk
window, text = Gtk.Window(title='shell'), Gtk.TextView()
text.get_accessible().set_role(Atk.Role.TERMINAL)
text.get_buffer().set_text('user@desk:~$ ')
text.get_buffer().place_cursor(text.get_buffer().get_end_iter())
window.set_default_size(360, 200); window.add(text); window.show_all(); Gtk.main()"""
"""A terminal as the accessibility bus sees one: no program of a test's desktop publishes its own."""


class Script(NamedTuple):
    """What is done on which task."""

    name: str
    task_id: str
    completions: tuple[str, ...]
    has_shell: bool = False


class Seen(NamedTuple):
    """One observation, raw."""

    frame: Frame
    tree: str
    terminal: str


class Played(NamedTuple):
    """A script after it was played: one observation more than turns."""

    turns: tuple[Turn, ...]
    seen: tuple[Seen, ...]
    score: float


def call(action: str, **arguments: object) -> str:
    """A completion with one call."""
    body = {"name": "computer_use", "arguments": {"action": action, **arguments}}
    return f"Action: go on.\n<tool_call>\n{json.dumps(body)}\n</tool_call>"


def click(x: int, y: int) -> str:
    return call("left_click", coordinate=[x, y])


DONE = call("terminate", status="success")
TYPED, SAVE = call("type", text="blue hen"), call("key", keys=["ctrl", "s"])
SCRIPTS = (
    Script("oracle of a note", NOTE, (TYPED, SAVE, DONE)),
    Script("oracle of colours", COLOUR, (click(312, 195), DONE)),
    Script("oracle of a menu", MENU, (call("key", keys=["enter"]), DONE)),
    Script("the same click five times", NOTE, (click(316, 230),) * 5),
    Script("garbage", NOTE, ("", "I cannot see anything.", "{}", "42", "<tool_call>{</tool_call>")),
    Script("waits", NOTE, (call("wait"),) * 4),
    Script("no action, then one", MENU, ("Hm.", call("key", keys=["down"]), call("wait"), DONE)),
    Script("typed twice", NOTE, (TYPED, TYPED, DONE)),
    Script(
        "scroll, drag, click, key",
        NOTE,
        (
            call("scroll", direction="down", amount=3),
            call("left_click_drag", coordinate=[200, 150], end_coordinate=[300, 200]),
            click(316, 230),
            call("key", keys=["end"]),
        ),
    ),
    Script(
        "off screen, words of the tree, a terminal",
        NOTE,
        (
            click(700, 900),
            call("type", text="Shell"),
            click(60, 60),
            call("type", text="ls ~ é"),
            call("key", keys=["enter"]),
        ),
        has_shell=True,
    ),
)


def play(desktop: DesktopEnv, script: Script) -> Played:
    """On a clean desktop with accessibility."""
    task = TASKS[script.task_id]
    prepare_and_score.setup(task, desktop)
    if script.has_shell:
        desktop.agent.launch(["/usr/bin/python3", "-c", SHELL])
        desktop.wait_for_window("shell")
    seen, turns = [look(desktop)], []
    for completion in script.completions:
        turns.append(_turn(desktop, completion, seen, len(turns)))
    last = turns[-1].action
    return Played(tuple(turns), tuple(seen), prepare_and_score.evaluate(task, desktop, last))


def look(desktop: DesktopEnv) -> Seen:
    """The screen at rest, then what its programs tell."""
    frame = desktop.observe()
    tree, terminal = (_answer(desktop, path) for path in ("/accessibility", "/terminal"))
    seen = Seen(frame, tree["AT"], terminal["output"] or "")
    texts = DesktopTexts(ReadText(seen.tree), ReadText(seen.terminal))
    return seen._replace(frame=replace(frame, texts=texts))


def _answer(desktop: DesktopEnv, path: str) -> dict[str, Any]:
    status, body = cast(AgentClient, desktop.agent).call("GET", path)
    assert status == 200, body
    return json.loads(body)


def _turn(desktop: DesktopEnv, completion: str, seen: list[Seen], index: int) -> Turn:
    before = seen[-1]
    screen = (before.frame.width, before.frame.height)
    parsed = parse_completion(completion, dialect="json", space=CoordinateSpace.SCREEN, screen=screen)
    action, refused = parsed.action, None
    if action is not None and action.kind is not ActionKind.TERMINATE:
        refused = off_screen_error(action, screen)
        if refused is None:
            desktop.act(action)
    seen.append(look(desktop))
    return Turn(
        index=index,
        observation=Observation(sha256="", width=screen[0], height=screen[1]),
        action=action,
        parse_error=parsed.error,
        action_error=refused,
        screen_changed=before.frame.raw_digest != seen[-1].frame.raw_digest,
        measured=measured_turn(action, before.frame, seen[-1].frame),
    )
