"""Deskhand panel: a window of coloured buttons, labels, entries and lists from a JSON description.

`task_form_window.py SPEC.json RESULT.json` (in a desktop: `deskhand-panel SPEC.json RESULT.json`).
SPEC    {"title", "x", "y", "width", "height": px of the content, "background": "#rrggbb",
         "widgets": [{"id", "kind": "button"|"label"|"entry"|"list", "text", "color", "x", "y",
                      "width", "height": px, "rows": [str], "selected": int,
                      "arrows_only": bool (list: only Up and Down move the row, and they wrap around, so that
                      a known row is not found without looking), "focusable": bool (button; default true)}],
         "close_on": [button ids, or "submit" for Return in an entry or list]}
RESULT  {"pressed": [ids in order], "fields": {id: text}, "selected": {id: row}, "closed_by": id | ""}
The result file is replaced atomically after every change, so a reader never sees half of it.

Keyboard: Tab and arrows move between buttons, Return or space presses, Up and Down move a list's row.
"""

import json
import os
import sys
import tkinter
import tkinter.font

DEFAULT_BACKGROUND = "#f2f3f5"
FOCUS_COLOR = "#111418"
HIGHLIGHT = "#1565c0"
ROW_COLOR = "#ffffff"


def text_on(color: str) -> str:
    """Black or white, whichever is readable on `#rrggbb`."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#14171a" if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else "#ffffff"


def font_pixels(height: int, text: str = "", width: int = 0) -> int:
    """Font size that fills a widget of this size pleasantly without cutting its text, pixels."""
    size = min(22, int(height * 0.45))
    if text and width:
        size = min(size, int(width * 0.9 / (0.68 * len(text))))  # bold DejaVu Sans is 0.68 em wide on average
    return max(9, size)


class Panel:
    """The window and the record of what the user did with it."""

    def __init__(self, root: tkinter.Tk, spec: dict, result_path: str) -> None:
        self.root = root
        self.spec = spec
        self.result_path = result_path
        self.close_on = set(spec.get("close_on") or [])
        self.pressed: list[str] = []
        self.entries: dict[str, tkinter.Entry] = {}
        self.lists: dict[str, ListBox] = {}
        self.closed_by = ""
        self._variables: list[tkinter.StringVar] = []
        """Kept: a collected variable takes its trace with it."""
        self._build()
        self.save()

    def _build(self) -> None:
        spec, root = self.spec, self.root
        width, height = int(spec.get("width", 320)), int(spec.get("height", 240))
        place = f"+{int(spec['x'])}+{int(spec['y'])}" if "x" in spec and "y" in spec else ""
        root.title(spec.get("title", "Deskhand panel"))
        root.geometry(f"{width}x{height}{place}")
        root.resizable(False, False)
        root.configure(background=spec.get("background", DEFAULT_BACKGROUND))
        root.protocol("WM_DELETE_WINDOW", lambda: self.close("window"))
        makers = {
            "button": self._add_button,
            "label": self._add_label,
            "entry": self._add_entry,
            "list": self._add_list,
        }
        focusable = [made for w in spec.get("widgets", []) if (made := makers[w["kind"]](w)) is not None]
        if focusable:
            focusable[0].focus_set()

    def _place(self, widget: tkinter.Widget, spec: dict) -> None:
        widget.place(x=spec["x"], y=spec["y"], width=spec["width"], height=spec["height"])

    def _add_label(self, spec: dict) -> None:
        color = spec.get("color") or self.spec.get("background", DEFAULT_BACKGROUND)
        font = tkinter.font.Font(family="DejaVu Sans", size=-font_pixels(spec["height"]))
        self._place(
            tkinter.Label(
                self.root, text=spec.get("text", ""), background=color, fg=text_on(color), font=font
            ),
            spec,
        )

    def _add_button(self, spec: dict) -> tkinter.Widget | None:
        """A flat coloured canvas: sharp edges, one colour, a dark frame when it has the focus."""
        color = spec.get("color") or "#d7dbe0"
        focusable = bool(spec.get("focusable", True))
        canvas = tkinter.Canvas(
            self.root, background=color, highlightthickness=3, takefocus=focusable, borderwidth=0,
            highlightbackground=color, highlightcolor=FOCUS_COLOR,
        )  # fmt: skip
        text = str(spec.get("text", ""))
        pixels = font_pixels(spec["height"], text, spec["width"])
        font = tkinter.font.Font(family="DejaVu Sans", size=-pixels, weight="bold")
        x, y = spec["width"] // 2 - 3, spec["height"] // 2 - 3
        canvas.create_text(x, y, text=text, fill=text_on(color), font=font)
        self._place(canvas, spec)

        def press(_event: object = None) -> str:
            if focusable:
                canvas.focus_set()
            self.press(spec["id"])
            return "break"

        # On press, not release: a release outside after a small drag still counts as the click it was.
        for event in ("<ButtonPress-1>", "<Return>", "<KP_Enter>", "<space>"):
            canvas.bind(event, press)
        for key in ("<Right>", "<Down>"):
            canvas.bind(key, lambda event: self._move_focus(event.widget.tk_focusNext()))
        for key in ("<Left>", "<Up>"):
            canvas.bind(key, lambda event: self._move_focus(event.widget.tk_focusPrev()))
        return canvas if focusable else None

    def _move_focus(self, widget: tkinter.Misc | None) -> str:
        if widget is not None:
            widget.focus_set()
        return "break"

    def _add_entry(self, spec: dict) -> tkinter.Widget:
        font = tkinter.font.Font(family="DejaVu Sans", size=-font_pixels(spec["height"]))
        variable = tkinter.StringVar(self.root, spec.get("text", ""))
        entry = tkinter.Entry(
            self.root, textvariable=variable, font=font, insertofftime=0,
            background=spec.get("color") or "#ffffff", foreground="#14171a", relief="flat",
            highlightthickness=2, highlightcolor=HIGHLIGHT, highlightbackground="#9aa3ad",
        )  # fmt: skip
        entry.icursor("end")
        variable.trace_add("write", lambda *_: self.save())
        self._variables.append(variable)
        entry.bind("<Return>", lambda _event: self.submit())
        self._place(entry, spec)
        self.entries[spec["id"]] = entry
        return entry

    def _add_list(self, spec: dict) -> tkinter.Widget:
        box = ListBox(self, spec)
        self._place(box.canvas, spec)
        self.lists[spec["id"]] = box
        return box.canvas

    # -- what the user did ------------------------------------------------------------------

    def press(self, widget_id: str) -> None:
        self.pressed.append(widget_id)
        if widget_id in self.close_on:
            self.close(widget_id)
        else:
            self.save()

    def submit(self) -> str:
        """Return in an entry or a list."""
        if "submit" in self.close_on:
            self.close("submit")
        else:
            self.save()
        return "break"

    def close(self, by: str) -> None:
        self.closed_by = by
        self.save()
        self.root.destroy()

    def save(self) -> None:
        result = {
            "pressed": self.pressed,
            "fields": {key: entry.get() for key, entry in self.entries.items()},
            "selected": {key: box.selected for key, box in self.lists.items()},
            "closed_by": self.closed_by,
        }
        partial = f"{self.result_path}.{os.getpid()}.part"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(partial, self.result_path)


class ListBox:
    """Big rows, one of them in a strong colour: readable at half resolution."""

    def __init__(self, panel: Panel, spec: dict) -> None:
        self.panel = panel
        self.rows = [str(row) for row in spec.get("rows") or [""]]
        self.selected = min(max(int(spec.get("selected", 0)), 0), len(self.rows) - 1)
        self.width, self.height = int(spec["width"]), int(spec["height"])
        self.color = spec.get("color") or HIGHLIGHT
        self.arrows_only = bool(spec.get("arrows_only", False))
        self.canvas = tkinter.Canvas(panel.root, background=ROW_COLOR, highlightthickness=0, takefocus=1)
        self.font = tkinter.font.Font(
            family="DejaVu Sans", size=-font_pixels(self.height // len(self.rows)), weight="bold"
        )
        self.canvas.bind("<Up>", lambda _event: self.select(self.selected - 1))
        self.canvas.bind("<Down>", lambda _event: self.select(self.selected + 1))
        if not self.arrows_only:
            self.canvas.bind("<Home>", lambda _event: self.select(0))
            self.canvas.bind("<End>", lambda _event: self.select(len(self.rows) - 1))
            self.canvas.bind("<ButtonPress-1>", self._click)
        for event in ("<Return>", "<KP_Enter>", "<space>"):
            self.canvas.bind(event, lambda _event: panel.submit())
        self.draw()

    def _edge(self, row: int) -> int:
        return self.height * row // len(self.rows)

    def _click(self, event: tkinter.Event) -> str:
        self.canvas.focus_set()
        return self.select(event.y * len(self.rows) // self.height)

    def select(self, row: int) -> str:
        """Move the highlight; stays within the list, or wraps around when only arrows work."""
        last = len(self.rows) - 1
        self.selected = row % len(self.rows) if self.arrows_only else min(max(row, 0), last)
        self.draw()
        self.panel.save()
        return "break"

    def draw(self) -> None:
        self.canvas.delete("all")
        for row, text in enumerate(self.rows):
            top, bottom = self._edge(row), self._edge(row + 1)
            fill = self.color if row == self.selected else ROW_COLOR
            self.canvas.create_rectangle(0, top, self.width, bottom, fill=fill, outline="#c4cad1")
            self.canvas.create_text(
                14, (top + bottom) // 2, text=text, anchor="w", fill=text_on(fill), font=self.font
            )


def main(arguments: list[str]) -> int:
    """Show the panel until it is closed. 2 = bad arguments or spec."""
    if len(arguments) != 2:
        sys.stderr.write("usage: panel.py SPEC.json RESULT.json\n")
        return 2
    spec_path, result_path = (os.path.expanduser(path) for path in arguments)
    try:
        with open(spec_path, encoding="utf-8") as file:
            spec = json.load(file)
        root = tkinter.Tk(className="Deskhand-panel")
        Panel(root, spec, result_path)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        sys.stderr.write(f"panel: {spec_path}: {type(exc).__name__}: {exc}\n")
        return 2
    root.mainloop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
