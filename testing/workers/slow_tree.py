"""A widget tree as GNOME's own library reads it, one question at a time: what the quick way has to equal.

`PROGRAM` runs in a desktop with Debian's Python. It prints {"tree": OSWorld's XML, "boxes": how many widgets
were asked for their place, "boxes_s": seconds for these questions alone}.
"""

PROGRAM = r"""
import json, time
import xml.etree.ElementTree as ET
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib

BASE = "https://accessibility.ubuntu.example.org/ns/"
WORDS = {"st": "state", "attr": "attributes", "cp": "component", "val": "value", "act": "action"}
for prefix, word in WORDS.items():
    ET.register_namespace(prefix, BASE + word)
KINDS = [kind for kind in vars(Atspi.StateType).values() if isinstance(kind, Atspi.StateType)]
names = {int(kind): kind.value_nick.replace("-", "_") for kind in KINDS}
Atspi.set_timeout(5000, 5000)
boxes, spent = 0, 0.0

def key(prefix, word):
    return "{%s%s}%s" % (BASE, WORDS[prefix], "".join(c if c.isalnum() or c in "_-." else "-" for c in word))

def element(widget):
    global boxes, spent
    widget.clear_cache()
    made = ET.Element(widget.get_role_name().replace(" ", "-"), {"name": widget.get_name() or ""})
    states = {names[int(state)] for state in widget.get_state_set().get_states()}
    for state in sorted(states):
        made.set(key("st", state), "true")
    if (component := widget.get_component_iface()) and {"showing", "visible"} <= states:
        started = time.perf_counter()
        place = component.get_extents(Atspi.CoordType.SCREEN)
        spent, boxes = spent + time.perf_counter() - started, boxes + 1
        made.set(key("cp", "screencoord"), "(%d, %d)" % (place.x, place.y))
        made.set(key("cp", "size"), "(%d, %d)" % (place.width, place.height))
    made.set(key("attr", "toolkit"), widget.get_toolkit_name())
    if value := widget.get_value_iface():
        made.set(key("val", "value"), str(value.get_current_value()))
        made.set(key("val", "min"), str(value.get_minimum_value()))
        made.set(key("val", "max"), str(value.get_maximum_value()))
        made.set(key("val", "step"), str(value.get_minimum_increment()))
    if (action := widget.get_action_iface()) and "showing" in states:
        for number in range(action.get_n_actions()):
            name = action.get_localized_name(number)
            made.set(key("act", name + "_desc"), action.get_action_description(number) or "")
            made.set(key("act", name + "_kb"), action.get_key_binding(number) or "")
    if text := widget.get_text_iface():
        made.text = (Atspi.Text.get_text(text, 0, -1) or "").replace("￼", "") or None
    for number in range(widget.get_child_count()):
        if child := widget.get_child_at_index(number):
            made.append(element(child))
    return made

frame = ET.Element("desktop-frame", {"name": "main"})
desktop = Atspi.get_desktop(0)
frame.extend(element(desktop.get_child_at_index(n)) for n in range(desktop.get_child_count()))
print(json.dumps({"tree": ET.tostring(frame, encoding="unicode"), "boxes": boxes, "boxes_s": spent}))
"""
