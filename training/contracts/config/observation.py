"""Knobs about what the policy reads at each turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, model_validator

from training.contracts.config.section import Problem, Section, knob

ObservationPart = Literal["screenshot", "accessibility", "terminal"]
PARTS: tuple[ObservationPart, ...] = ("screenshot", "accessibility", "terminal")
_IS_TRUE = TypeAdapter(bool)


def _no_marks(parts: Any) -> Any:
    if isinstance(parts, (list, tuple)) and "marks" in parts:
        raise ValueError(
            "marks (numbered boxes on the picture) are not drawn yet: use accessibility, whose text has the "
            "place of each widget"
        )
    return parts


def _in_order(parts: tuple[ObservationPart, ...]) -> tuple[ObservationPart, ...]:
    """Each once, so that equal observations are equal configs."""
    return tuple(part for part in PARTS if part in parts)


class ObservationKnobs(Section):
    """What a turn shows; part of section `prompt`."""

    observation: Annotated[
        tuple[ObservationPart, ...], BeforeValidator(_no_marks), AfterValidator(_in_order)
    ] = knob(
        ("screenshot",),
        "What the policy reads at each turn: screenshot, accessibility (the tree of widgets), terminal (its "
        "text), in any combination. Empty = the blind policy, an ablation.",
    )
    accessibility_form: Literal["osworld", "short"] = knob(
        "osworld",
        "How the tree is written: osworld = the table that OSWorld's agents give their models; short = role, "
        "name, states and centre of each widget, a third of the length.",
    )
    accessibility_chars: int = knob(
        12_000, "Of the tree's text at most; a notice says what was cut.", unit="characters",
        ge=200, le=200_000,
    )  # fmt: skip
    terminal_chars: int = knob(
        4096, "Of the terminal's text at most, its end; a notice says what was cut.", unit="characters",
        ge=200, le=200_000,
    )  # fmt: skip
    observation_every: int = knob(
        1,
        "Tree and terminal are in the text of every n-th turn; 0 = of none: they are recorded for rewards "
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
        """Whether the policy sees screenshots."""
        return "screenshot" in self.observation

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
        return self.reads_tree or self.reads_terminal

    @property
    def is_blind(self) -> bool:
        """Whether the policy is shown nothing of the desktop."""
        return not self.observation


def observation_problems(prompt: ObservationKnobs, *, has_sft: bool) -> Iterator[Problem]:
    """What cannot be shown."""
    if prompt.is_blind and has_sft:
        yield (
            "prompt.observation",
            "an SFT stage needs something that the policy reads: add screenshot, accessibility or terminal",
        )
    if not prompt.observation_every and not prompt.shows_screen and prompt.reads_text:
        yield (
            "prompt.observation_every",
            "0 shows the tree and the terminal at no turn, and there is no screenshot: set 1 or more",
        )
