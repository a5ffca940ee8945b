"""Deskhand widgets: a GTK window of fields, switches, rows and buttons that the accessibility tree names.

`deskhand-widgets SPEC.json RESULT.json`
SPEC    {"title", "width", "height": px of the content, "pages": [{"title", "widgets": [...]}]}; a widget is
        {"kind": "button"|"entry"|"check"|"rows"|"page", "name", "x", "y", "width", "height": px}, and
        an entry has "text", a check "on", a button of kind page brings the page of its name to the front,
        rows have "rows": [{"name", "note"}], each of the given height; ctrl+c copies the chosen one's note,
        F2 opens a dialog that renames it
RESULT  {"fields": {name: text}, "checks": {name: bool}, "rows": [names], "selected": name | "",
         "pressed": [names of buttons],
         "log": [["click", name | ""], ["type", text], ["key", "ctrl+c"], ...]}
The result file is replaced atomically after every change, so a reader never sees half of it.
"""

import json
import os
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Atk, Gdk, GLib, Gtk  # noqa: E402 - the version must be chosen first

LABEL_WIDTH, GAP = 96, 6
MODIFIERS = ((Gdk.ModifierType.CONTROL_MASK, "ctrl"), (Gdk.ModifierType.MOD1_MASK, "alt"))
MODIFIER_KEYS = frozenset(
    f"{key}_{side}" for key in ("Shift", "Control", "Alt", "Meta", "Super") for side in "LR"
)
BUTTON_1 = 1


class Row(Gtk.ListBoxRow):
    """One line of a list, and what is copied from it."""

    def __init__(self, word: str, note: str) -> None:
        super().__init__()
        self.note = note
        self.label = Gtk.Label(xalign=0.0)
        # The row says its own name.
        self.label.get_accessible().set_role(Atk.Role.REDUNDANT_OBJECT)
        self.add(self.label)
        self.call(word)

    def call(self, word: str) -> None:
        """Give it this name."""
        self.word = word
        text = f"{word}, {self.note}" if self.note else word
        self.label.set_text(text)
        self.get_accessible().set_name(text)


class Widgets:
    """The window and the record of what was done in it."""

    def __init__(self, spec: dict, result_path: str) -> None:
        self.result_path = result_path
        self.result: dict = {"fields": {}, "checks": {}, "selected": "", "pressed": []}
        self.result["log"] = []
        self.lists: list[Gtk.ListBox] = []
        self.seen = (0, 0.0, 0.0)
        """The last click that was recorded: one that several widgets hear of is one."""
        self.window = Gtk.Window(title=spec["title"], resizable=False)
        self.pages = Gtk.Stack()
        for page in spec["pages"]:
            self.pages.add_named(self._page(page["widgets"], spec), page["title"])
        self.window.add(self.pages)
        self.window.connect("key-press-event", self._key)
        self.window.connect("delete-event", lambda *_: True)  # a task's window stays
        # What no widget takes comes here, and is a click on nothing.
        self.window.add_events(Gdk.EventMask.BUTTON_PRESS_MASK)
        self.window.connect("button-press-event", self._clicked, "")
        self.window.show_all()
        self.window.set_focus(None)  # else the first field has the keyboard
        self.save()

    def _page(self, widgets: list, spec: dict) -> Gtk.Fixed:
        page = Gtk.Fixed()
        page.set_size_request(spec["width"], spec["height"])
        makers = {"button": self._button, "entry": self._entry, "check": self._check, "rows": self._rows}
        for widget in widgets:
            made = makers.get(widget["kind"], self._page_button)(widget, page)
            if widget["kind"] != "rows":
                made.set_size_request(widget["width"], widget["height"])
                made.get_accessible().set_name(widget["name"])
                made.connect("button-press-event", self._clicked, widget["name"])
            page.put(made, widget["x"], widget["y"])
        return page

    def _button(self, widget: dict, _page: Gtk.Fixed) -> Gtk.Widget:
        button = Gtk.Button(label=widget["name"])
        button.connect("clicked", lambda _button: self._pressed(widget["name"]))
        return button

    def _page_button(self, widget: dict, _page: Gtk.Fixed) -> Gtk.Widget:
        button = Gtk.Button(label=widget["name"])
        button.connect("clicked", lambda _button: self._turn_to(widget["name"]))
        return button

    def _entry(self, widget: dict, page: Gtk.Fixed) -> Gtk.Widget:
        label = Gtk.Label(label=widget["name"], xalign=1.0)
        label.set_size_request(LABEL_WIDTH, widget["height"])
        # The entry says its own name, as a labelled field of a web page does.
        label.get_accessible().set_role(Atk.Role.REDUNDANT_OBJECT)
        page.put(label, widget["x"] - LABEL_WIDTH - GAP, widget["y"])
        entry = Gtk.Entry(text=widget.get("text", ""), width_chars=1)
        self.result["fields"][widget["name"]] = entry.get_text()
        entry.connect("changed", lambda _entry: self._note("fields", widget["name"], entry.get_text()))
        return entry

    def _check(self, widget: dict, _page: Gtk.Fixed) -> Gtk.Widget:
        check = Gtk.CheckButton(label=widget["name"], active=widget["on"])
        self.result["checks"][widget["name"]] = widget["on"]
        check.connect("toggled", lambda _check: self._note("checks", widget["name"], check.get_active()))
        return check

    def _rows(self, widget: dict, _page: Gtk.Fixed) -> Gtk.Widget:
        box = Gtk.ListBox(selection_mode=Gtk.SelectionMode.SINGLE)
        for item in widget["rows"]:
            row = Row(item["name"], item.get("note", ""))
            row.set_size_request(widget["width"], widget["height"])
            box.add(row)
        box.connect("button-press-event", self._row_clicked)
        box.connect("row-selected", lambda _box, row: self._select(row.word if row else ""))
        self.lists.append(box)
        return box

    # -- what was done ----------------------------------------------------------------------

    def _turn_to(self, title: str) -> None:
        self.pages.set_visible_child_name(title)
        self.window.set_title(title)
        self.window.set_focus(None)

    def _pressed(self, name: str) -> None:
        self.result["pressed"].append(name)
        self.save()

    def _select(self, name: str) -> None:
        self.result["selected"] = name
        self.save()

    def _note(self, kind: str, name: str, value: object) -> None:
        self.result[kind][name] = value
        self.save()

    def _row_clicked(self, box: Gtk.ListBox, event: Gdk.EventButton) -> bool:
        row = box.get_row_at_y(int(event.y))
        return self._clicked(box, event, row.word if row else "")

    def _clicked(self, _widget: Gtk.Widget, event: Gdk.EventButton, name: str) -> bool:
        this = (event.time, event.x_root, event.y_root)
        if event.type is Gdk.EventType.BUTTON_PRESS and this != self.seen:
            self.seen = this
            kind = "click" if event.button == BUTTON_1 else f"click {event.button}"
            self.result["log"].append([kind, name])
            self.save()
        return False

    def _key(self, _window: Gtk.Window, event: Gdk.EventKey) -> bool:
        if Gdk.keyval_name(event.keyval) in MODIFIER_KEYS:
            return False
        held = [word for mask, word in MODIFIERS if event.state & mask]
        letter = chr(Gdk.keyval_to_unicode(event.keyval))
        log = self.result["log"]
        if not held and letter.isprintable():
            if log and log[-1][0] == "type":
                log[-1][1] += letter
            else:
                log.append(["type", letter])
        else:
            log.append(["key", "+".join([*held, Gdk.keyval_name(event.keyval)])])
        row = next((box.get_selected_row() for box in self.lists if box.get_mapped()), None)
        if row is not None and not isinstance(self.window.get_focus(), Gtk.Entry):
            if log[-1] == ["key", "ctrl+c"]:
                Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).set_text(row.note or row.word, -1)
            elif log[-1] == ["key", "F2"]:
                self._rename(row)
        self.save()
        return False

    def _rename(self, row: "Row") -> None:
        """A dialog with the whole name selected."""
        dialog = Gtk.Dialog(title="Rename", transient_for=self.window, modal=True)
        dialog.add_buttons("Cancel", Gtk.ResponseType.CANCEL, "OK", Gtk.ResponseType.OK)
        entry = Gtk.Entry(text=row.word)
        # Not by the default button, which answers a quarter second later.
        entry.connect("activate", lambda _entry: dialog.response(Gtk.ResponseType.OK))
        entry.get_accessible().set_name("New name")
        dialog.get_content_area().add(entry)

        def answered(_dialog: Gtk.Dialog, answer: int) -> None:
            if answer == Gtk.ResponseType.OK:
                row.call(entry.get_text())
            dialog.destroy()
            self._select(row.word)

        dialog.connect("response", answered)
        dialog.show_all()

    def save(self) -> None:
        rows = [row.word for box in self.lists for row in box.get_children()]
        partial = f"{self.result_path}.{os.getpid()}.part"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump({**self.result, "rows": rows}, file)
        os.replace(partial, self.result_path)


def main(arguments: list[str]) -> int:
    """Show the window for as long as the desktop lives. 2 = bad arguments or spec."""
    if len(arguments) != 2:
        sys.stderr.write("usage: deskhand-widgets SPEC.json RESULT.json\n")
        return 2
    spec_path, result_path = (os.path.expanduser(path) for path in arguments)
    GLib.set_prgname("deskhand-widgets")
    try:
        with open(spec_path, encoding="utf-8") as file:
            Widgets(json.load(file), result_path)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        sys.stderr.write(f"widgets: {spec_path}: {type(exc).__name__}: {exc}\n")
        return 2
    Gtk.main()
    return 0
