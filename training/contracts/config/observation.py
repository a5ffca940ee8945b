"""Knobs about what the policy reads at each turn."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, TypeAdapter, model_validator

from training.contracts.config.section import Problem, Section, knob

ObservationPart = Literal["screenshot", "marks", "accessibility", "terminal"]
PARTS: tuple[ObservationPart, ...] = ("screenshot", "marks", "accessibility", "terminal")
_IS_TRUE = TypeAdapter(bool)


def _in_order(parts: tuple[ObservationPart, ...]) -> tuple[ObservationPart, ...]:
    """Each once, so that equal observations are equal configs; marks are drawn on the screenshot."""
    surplus = {"screenshot"} if "marks" in parts else set()
    return tuple(part for part in PARTS if part in parts and part not in surplus)


class ObservationKnobs(Section):
    """What a turn shows; part of section `prompt`."""

    observation: Annotated[tuple[ObservationPart, ...], AfterValidator(_in_order)] = knob(
        ("screenshot",),
        "What the policy reads at each turn: screenshot, marks (the screenshot with numbered boxes around "
        "widgets, and their list), accessibility (the tree of widgets), terminal (its text), in any "
        "combination. Empty = the blind policy, an ablation.",
    )
    accessibility_form: Literal["osworld", "short"] = knob(
        "osworld",
        "How the tree is written: osworld = the table that OSWorld's agents give their models; short = role, "
        "name, states and centre of each widget, a third of the length.",
    )
    accessibility_chars: int = knob(
        12_000, "Of the tree's text, and of the list of marks, at most; a notice says what was cut.",
        unit="characters", ge=200, le=200_000,
    )  # fmt: skip
    terminal_chars: int = knob(
        4096, "Of the terminal's text at most, its end; a notice says what was cut.", unit="characters",
        ge=200, le=200_000,
    )  # fmt: skip
    observation_every: int = knob(
        1,
        "Tree, terminal and marks are shown at every n-th turn; 0 = at none: they are recorded for rewards "
        "and people alone. The screenshot is in every turn.",
        unit="turns",
        ge=0,
    )

    @model_validator(mode="before")
    @classmethod
    def _text_only(cls, values: Any) -> Any:
        """Configs of before `observation` have `text_only`, which leaves the screenshots out."""
        if not isinstance(values, Mapping) or "text_only" not in values:
            return values
        rest = {name: value for name, value in values.items() if name != "text_only"}
        if _IS_TRUE.validate_python(values["text_only"]):
            named = rest.get("observation", ())
            rest["observation"] = [part for part in named if part != "screenshot"]
        return rest

    @property
    def shows_screen(self) -> bool:
        """Whether the policy sees screenshots, plain or with marks."""
        return "screenshot" in self.observation or self.reads_marks

    @property
    def reads_marks(self) -> bool:
        """Whether numbered boxes are drawn on the screenshots."""
        return "marks" in self.observation

    @property
    def reads_tree(self) -> bool:
        """Whether the accessibility tree is read at each turn."""
        return "accessibility" in self.observation

    @property
    def reads_terminal(self) -> bool:
        """Whether the terminal's text is read at each turn."""
        return "terminal" in self.observation

    @property
    def reads_text(self) -> bool:
        """Whether anything but the picture is read."""
        return self.reads_tree or self.reads_terminal or self.reads_marks

    def shows_texts_at(self, index: int) -> bool:
        """Whether turn `index` shows tree, terminal and marks."""
        return bool(self.observation_every) and not index % self.observation_every

    @property
    def is_blind(self) -> bool:
        """Whether the policy is shown nothing of the desktop."""
        return not self.observation


def observation_problems(prompt: ObservationKnobs, *, has_sft: bool) -> Iterator[Problem]:
    """What cannot be shown."""
    if prompt.is_blind and has_sft:
        yield (
            "prompt.observation",
            "an SFT stage needs something that the policy reads: add screenshot, marks, accessibility or "
            "terminal",
        )
    if prompt.observation_every or not prompt.reads_text:
        return
    if prompt.reads_marks:
        yield "prompt.observation_every", "0 draws the marks at no turn: set 1 or more, or leave marks out"
    elif not prompt.shows_screen:
        yield (
            "prompt.observation_every",
            "0 shows the tree and the terminal at no turn, and there is no screenshot: set 1 or more",
        )
