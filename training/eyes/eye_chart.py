"""What the eye test has both sides read: pictures of four non-square sizes, or long texts without eyes."""

from dataclasses import dataclass

from training.contracts.eye_test import NUM_TARGETS
from training.eyes.screens import INSTRUCTION, SIZES, Screen, Size, drawn_screen
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer

TEXT_TOKENS = (1024, 2048, 4096, 8192)
SHORT_TEXT_TOKENS = (128, 256)
"""Of the short form: a CPU reads some hundred tokens a second."""
ROOM = 128
"""Tokens that an answer may have."""


@dataclass(frozen=True, slots=True)
class View:
    """One thing to read."""

    name: str
    screen: Screen
    num_lines: int = 0
    """Of text; 0 = a picture."""


def views(renderer: Renderer, *, is_whole: bool, max_context_tokens: int) -> list[View]:
    if shows_pictures(renderer):
        return [View(f"{size[0]}x{size[1]}", drawn_screen(size)) for size in SIZES]
    lengths = TEXT_TOKENS if is_whole else SHORT_TEXT_TOKENS
    fitting = [length for length in lengths if length + ROOM <= max_context_tokens]
    return [
        _text_view(renderer, length, SIZES[place])
        for place, length in enumerate(fitting or [max_context_tokens // 2])
    ]


def _text_view(renderer: Renderer, tokens: int, size: Size) -> View:
    """As many lines as fit."""
    screen = drawn_screen(size)
    whole = View("", screen, num_lines=tokens)
    per_line = len(asked(renderer, whole).token_ids) / tokens
    return View(f"a text of {tokens} tokens", screen, max(1, int(tokens / per_line)))


def targets(renderer: Renderer) -> list[View]:
    """What is clicked: other screens, of all sizes in turn."""
    lines = 0 if shows_pictures(renderer) else 1
    screens = (drawn_screen(SIZES[seed % len(SIZES)], seed) for seed in range(1, NUM_TARGETS + 1))
    return [View(f"target {number}", screen, lines) for number, screen in enumerate(screens, 1)]


def shows_pictures(renderer: Renderer) -> bool:
    """Whether this policy sees screens."""
    return renderer.sees and renderer.prompt.shows_screen


def asked(renderer: Renderer, view: View) -> RenderedSequence:
    """The view as a trajectory of one turn whose answer is yet to come; its picture is named as it is."""
    rendered = RenderedSequence()
    size = None
    if not view.num_lines:
        size = view.screen.size
        rendered.images.append(view.name)
        rendered.grids.append(renderer.image_grid(size))
    text = INSTRUCTION if size else f"{INSTRUCTION}\n\n{view.screen.tree(view.num_lines)}"
    rendered.append_prompt(renderer.render_turn(0, text, size, instruction=text))
    return rendered


def answer_ids(renderer: Renderer, view: View) -> list[int]:
    """A click on the target, whatever dialect the policy has: both sides score the same tokens."""
    x, y = view.screen.target
    return renderer.completion_ids(f'{{"action":"left_click","coordinate":[{x},{y}]}}')
