"""Published success on OSWorld, to set beside one's own: always with the number of steps.

None of these was run by us. The figures were read at second hand: those of Qwen3-VL from its report, whose
steps and temperature were not stated where we read them; the others from the table of OpenCUA's paper
(arXiv 2508.09123) on OSWorld-Verified, which names steps and no temperature.
"""

from dataclasses import dataclass

OPENCUA = "OpenCUA's paper, OSWorld-Verified, at second hand"
QWEN = "Qwen3-VL's report, OSWorld, at second hand"


@dataclass(frozen=True, slots=True)
class Published:
    """One model's success in percent, by the most steps that an episode might take."""

    model: str
    by_steps: dict[int, float]
    source: str
    unknown_steps: float | None = None
    """Success where the number of steps is not stated."""

    @property
    def cells(self) -> list[float | None]:
        """In the order of `STEPS`, then the one with unknown steps."""
        return [*(self.by_steps.get(steps) for steps in STEPS), self.unknown_steps]


OSWORLD_DOMAINS = frozenset(
    (
        *("chrome", "gimp", "libreoffice_calc", "libreoffice_impress", "libreoffice_writer"),
        *("multi_apps", "os", "thunderbird", "vlc", "vs_code"),
    )
)
"""Folders of its tasks: what was published is of these."""
STEPS = (15, 50, 100)
PUBLISHED = (
    Published("Qwen3-VL-8B-Instruct", {}, QWEN, 33.9),
    Published("Qwen3-VL-32B-Instruct", {}, QWEN, 32.6),
    Published("Qwen3-VL-235B-A22B-Thinking", {}, QWEN, 38.1),
    Published("OpenCUA-7B", {15: 24.3, 50: 27.9, 100: 26.6}, OPENCUA),
    Published("OpenCUA-32B", {15: 29.7, 50: 34.1, 100: 34.8}, OPENCUA),
    Published("UI-TARS-1.5-7B", {15: 24.5, 50: 27.3, 100: 27.4}, OPENCUA),
    Published("OpenAI CUA", {15: 26.0, 50: 31.3, 100: 31.4}, OPENCUA),
    Published("Claude Sonnet 4", {15: 31.2, 50: 43.9, 100: 41.5}, OPENCUA),
)
