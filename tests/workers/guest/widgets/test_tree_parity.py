"""A tree that is read quickly holds what GNOME's own library reads, question by question."""

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from testing.workers.slow_tree import PROGRAM
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

WINDOW = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk
window, grid = Gtk.Window(title="Kinds"), Gtk.Grid()
notebook, hidden = Gtk.Notebook(), Gtk.Label(label="behind")
store = Gtk.ListStore(str, int)
for row in range(30):
    store.append([f"row {row} & <more>", row])
table = Gtk.TreeView(model=store)
for number, title in enumerate(("Name", "Number")):
    table.append_column(Gtk.TreeViewColumn(title, Gtk.CellRendererText(), text=number))
scrolled = Gtk.ScrolledWindow(width_request=200, height_request=80)
scrolled.add(table)
notebook.append_page(scrolled, Gtk.Label(label="first"))
notebook.append_page(hidden, Gtk.Label(label="second"))
entry, level = Gtk.Entry(text='tab\\there "quoted"'), Gtk.SpinButton.new_with_range(0, 9, 0.5)
button = Gtk.Button.new_with_mnemonic("_Add")
scale, box = Gtk.Scale.new_with_range(0, 0, 100, 5), Gtk.ComboBoxText()
for word in ("one", "two"):
    box.append_text(word)
for place, made in enumerate((notebook, entry, level, scale, box, button, Gtk.Switch(), Gtk.TextView())):
    grid.attach(made, 0, place, 1, 1)
def add(_button):
    grid.attach(Gtk.CheckButton(label=f"added {level.get_value()}"), 1, int(level.get_value() * 2), 1, 1)
    level.set_value(level.get_value() + 0.5)
    scrolled.get_vadjustment().set_value(40)
    notebook.set_current_page(1 - notebook.get_current_page())
    entry.set_text(entry.get_text() + "+")
    grid.show_all()
button.connect("clicked", add)
window.add(grid)
window.show_all()
Gtk.main()
"""
PRESS = """
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi
def find(widget):
    if widget.get_name() == "Add":
        widget.get_action_iface().do_action(0)
    for number in range(widget.get_child_count()):
        find(widget.get_child_at_index(number))
find(Atspi.get_desktop(0))
"""


@pytest.fixture(scope="module")
def env(desk_client: DeskHostClient) -> Iterator[DesktopEnv]:
    spec = DesktopSpec(width=1024, height=768, accessibility=True)
    lease = desk_client.acquire("x11", spec, holder="parity", ttl_s=120)
    with DesktopEnv(desk_client, lease) as env:
        env.reset()
        env.agent.launch(["/usr/bin/python3", "-c", WINDOW])
        for program, title in (("mousepad", "Mousepad"), ("galculator", "galculator")):
            env.agent.launch([program])
            env.wait_for_window(title, timeout_s=30)
        env.wait_for_window("Kinds", timeout_s=30)
        env.observe()
        yield env


def run(env: DesktopEnv, code: str) -> str:
    answer = env.agent.ask("/execute", {"command": ["/usr/bin/python3", "-c", code]}, timeout_s=60)
    assert answer["returncode"] == 0, answer["error"]
    return str(answer["output"])


def as_lists(tree: str) -> list[object]:
    def plain(element: ET.Element) -> list[object]:
        return [element.tag, element.attrib, element.text, [plain(child) for child in element]]

    return plain(ET.fromstring(tree))


def test_nothing_differs_at_first_and_after_changes(env: DesktopEnv) -> None:
    slow, sizes = {}, set()
    for turn in range(4):
        if turn:
            run(env, PRESS)
            time.sleep(0.5)
        quick = env.agent.accessibility()
        slow = json.loads(run(env, PROGRAM))
        assert as_lists(quick) == as_lists(slow["tree"])
        assert env.agent.accessibility() == quick, "what is remembered changes nothing"
        sizes.add(len(quick))
    assert len(sizes) > 1, "the changes are seen"
    assert slow["boxes"] > 60


def test_a_reader_that_was_ended_is_made_anew(env: DesktopEnv) -> None:
    """As an evaluation's end does."""
    env.agent.accessibility()
    env.agent.begin_evaluation()
    run(env, "pass")
    assert "galculator" in env.agent.accessibility()
