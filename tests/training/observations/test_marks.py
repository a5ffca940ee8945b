"""Our numbered boxes are those of OSWorld's own set-of-marks agent: the same widgets, list and pixels.

Theirs is asked of OSWorld's own package (`make osworld-env`, part of the tests' set-up).
"""

import base64
import hashlib
import io
import json
import random
import subprocess
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageDraw

from testing.paths import REPOSITORY
from tests.training.observations.test_osworld_table import tree
from training.actions.parse_completion import parse_completion
from training.contracts.config import CoordinateSpace, ModelConfig, PromptConfig
from training.contracts.observed_text import Marks
from training.contracts.types import Action, Observation
from training.observations.marks import draw_marks
from training.observations.turn_text import RawTexts, turn_text, unmarked

PYTHON = REPOSITORY / ".venv-osworld" / "bin" / "python"
THEIRS = """
import base64, hashlib, io, json, sys
import xml.etree.ElementTree as ET
from PIL import Image, ImageFont
from mm_agents.accessibility_tree_wrap.heuristic_retrieve import filter_nodes, draw_bounding_boxes
truetype = ImageFont.truetype
def without_arial(font, *sizes, **others):
    if font == "arial.ttf": raise OSError
    return truetype(font, *sizes, **others)
ImageFont.truetype = without_arial
screen = base64.b64decode(sys.stdin.readline())
for xml in json.loads(sys.stdin.readline()):
    nodes = filter_nodes(ET.fromstring(xml), platform="ubuntu", check_image=True)
    marks, _, listed, png = draw_bounding_boxes(nodes, screen)
    pixels = hashlib.sha256(Image.open(io.BytesIO(png)).convert("RGB").tobytes()).hexdigest()
    print(json.dumps([marks, listed, pixels]))
"""
"""With Pillow's own font: Arial, which theirs prefers, is on few machines."""
SIZE = (640, 480)
BASE = "https://accessibility.ubuntu.example.org/ns/"


def screen() -> Image.Image:
    """Panels and lines on a grey ground, so that some places show one colour."""
    rng, image = random.Random(4), Image.new("RGB", SIZE, (200, 200, 200))
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        left, top = rng.randint(0, 600), rng.randint(0, 440)
        colour = tuple(rng.randint(0, 255) for _ in range(3))
        draw.rectangle((left, top, left + rng.randint(2, 90), top + rng.randint(2, 40)), fill=colour)
    return image


def unnamed_picture(xml: str) -> str:
    """With a widget that says nothing but is a picture, and one that reaches out of the screen."""
    root = ElementTree.fromstring(xml)
    states = {f"{{{BASE}state}}{state}": "true" for state in ("showing", "visible", "enabled")}
    for name, place, size in (("", (5, 5), (600, 400)), ("out", (600, 400), (300, 300))):
        where = {f"{{{BASE}component}}screencoord": str(place), f"{{{BASE}component}}size": str(size)}
        ElementTree.SubElement(root, "icon", {"image": "true", "name": name, **states, **where})
    return ElementTree.tostring(root, encoding="unicode")


def test_boxes_list_and_pixels_are_osworlds_own() -> None:
    trees = [unnamed_picture(tree("ubuntu", seed)) for seed in range(6)]
    png = io.BytesIO()
    screen().save(png, "PNG")
    answer = subprocess.run(
        [PYTHON, "-c", THEIRS],
        input=base64.b64encode(png.getvalue()).decode() + "\n" + json.dumps(trees),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    num_boxes = 0
    for xml, line in zip(trees, answer.stdout.splitlines(), strict=True):
        boxes, listed, pixels = json.loads(line)
        ours = draw_marks(screen(), xml)
        assert [list(box) for box in ours.boxes] == boxes
        assert ours.listed == listed
        assert hashlib.sha256(ours.picture.tobytes()).hexdigest() == pixels
        num_boxes += len(boxes)
    assert num_boxes > 90


def test_a_box_of_any_size_costs_no_memory() -> None:
    states = "".join(f' st:{state}="true"' for state in ("showing", "visible", "enabled"))
    xml = (
        f'<desktop-frame xmlns:st="{BASE}state" xmlns:cp="{BASE}component"><push-button name="Huge" '
        f'cp:screencoord="(3, 3)" cp:size="(90000000, 90000000)"{states}/></desktop-frame>'
    )
    assert draw_marks(screen(), xml).boxes == ((3, 3, 90_000_000, 90_000_000),)


@pytest.mark.parametrize("place", ["(700, 10)", "(10, 500)"])
def test_what_lies_beyond_the_screen_has_no_box(place: str) -> None:
    xml = unnamed_picture("<desktop-frame/>").replace("(600, 400)", place)
    assert len(draw_marks(screen(), xml).boxes) == 1


BOXES = ((0, 0, 10, 10), (100, 50, 41, 20))


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("pyautogui.click(tag_2)", Action(kind="click", x=120, y=60)),
        ("```python\npyautogui.moveTo(tag_1)\npyautogui.dragTo(tag_2, button='left')\n```",
         Action(kind="drag", x=5, y=5, to_x=120, to_y=60)),
        ("pyautogui.scroll(-3, tag_1)", Action(kind="scroll", x=5, y=5, scroll_y=3)),
    ],
)  # fmt: skip
def test_code_names_a_box_where_a_point_stands(text: str, action: Action) -> None:
    """In screen pixels, whatever the numbers of other completions mean."""
    for space in (CoordinateSpace.SCREEN, CoordinateSpace.PERMILLE):
        parsed = parse_completion(text, dialect="pyautogui", space=space, screen=SIZE, boxes=BOXES)
        assert parsed.actions == (action,)


@pytest.mark.parametrize(
    ("text", "boxes", "words"),
    [
        ("pyautogui.click(tag_3)", BOXES, "there is no tag_3: the picture has 2"),
        ("pyautogui.click(tag_0)", BOXES, "there is no tag_0"),
        ("pyautogui.click(tag_1)", (), "the picture has no marks"),
        ("pyautogui.click(tag_1, tag_2)", BOXES, "must be a number"),
        ("pyautogui.write(tag_1)", BOXES, "non-empty string"),
        ("pyautogui.click(other)", BOXES, "literal numbers"),
    ],
)
def test_a_box_that_is_not_there_is_an_error(text: str, boxes: tuple, words: str) -> None:
    parsed = parse_completion(
        text, dialect="pyautogui", space=CoordinateSpace.SCREEN, screen=SIZE, boxes=boxes
    )
    assert words in (parsed.error or "")


def test_the_list_is_read_and_a_policy_without_marks_has_the_plain_screen() -> None:
    with_marks = PromptConfig(observation=("marks",))
    read = RawTexts(marks='index\ttag\tname\ttext\n1\ticon\tTrash\t""')
    text = turn_text("Go.", read, 0, with_marks, ModelConfig(), SIZE)
    assert text == f"Go.\n\n[Marked widgets]\n{read.marks}"
    marks = Marks(plain="a" * 64, boxes=BOXES)
    seen = Observation(sha256="b" * 64, width=640, height=480, text=text, marks=marks)
    assert unmarked(seen, with_marks) == seen
    plain = unmarked(seen, PromptConfig())
    assert (plain.sha256, plain.text, plain.marks) == ("a" * 64, "Go.", None)
