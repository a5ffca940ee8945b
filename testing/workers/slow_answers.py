"""A window that answers a click late: by a timer, without using the processor meanwhile, or for ever."""

from __future__ import annotations

from workers.desktops.leased_desktop import DesktopEnv

TK = """
import sys, tkinter
after_ms = int(sys.argv[1])
root = tkinter.Tk()
root.title("Slow answer")
root.geometry("300x200+60+60")
label = tkinter.Label(root, text="before", bg="white")
label.pack(fill="both", expand=True)
count = 0
def answer():
    global count
    count += 1
    label.config(text=f"after {count}", bg=["red", "green", "blue"][count % 3])
def move():
    answer()
    root.after(30, move)
label.bind("<Button-1>", lambda _: root.after(after_ms, answer) if after_ms else move())
root.mainloop()
"""
GTK = """
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk
after_ms = int(sys.argv[1])
window, box, label = Gtk.Window(title="Slow answer"), Gtk.EventBox(), Gtk.Label(label="before")
window.set_default_size(300, 200)
box.add(label)
window.add(box)
def answer(*_):
    label.set_text(label.get_text() + "!")
    return after_ms == 0
box.connect("button-press-event", lambda *_: GLib.timeout_add(after_ms or 30, answer) and None)
window.show_all()
Gtk.main()
"""
SLEEPER = """
import sys, time
from Xlib import X, display
shown = display.Display()
screen = shown.screen()
window = screen.root.create_window(60, 60, 300, 200, 0, screen.root_depth, background_pixel=0xFFFFFF,
    event_mask=X.ButtonPressMask)
window.set_wm_name("Slow answer")
window.map()
colour = 0
while True:
    if shown.next_event().type == X.ButtonPress:
        time.sleep(int(sys.argv[1]) / 1000)
        colour = (colour + 0x305070) & 0xFFFFFF
        window.change_attributes(background_pixel=colour)
        window.clear_area()
        shown.flush()
"""
PROGRAMS = {"tk": TK, "gtk": GTK, "sleeper": SLEEPER}


def answers(env: DesktopEnv, after_ms: int, program: str = "tk") -> tuple[int, int]:
    """Open it; where to click. `after_ms` 0: from the first click on it never rests."""
    env.agent.put("~/answers.py", PROGRAMS[program].encode())
    env.agent.launch(["/usr/bin/python3", f"{env.home}/answers.py", str(after_ms)])
    window = env.wait_for_window("Slow answer", timeout_s=60.0)
    return window.x + 100, window.y + 100
