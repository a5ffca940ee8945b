"""Write docs/settings.md anew: every setting of an experiment, as the config's schema describes it.

.venv/bin/python -m scripts.write_settings_page        after a change of training/contracts/config
"""

import itertools
import sys
from pathlib import Path

from webapp.experiments.knobs import Knob, KnobSection, sections

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
HEAD = """# Settings of an experiment

Written by `.venv/bin/python -m scripts.write_settings_page` from the schema that checks every config. \
The launch form, YAML, the command line and the API use the same names: `algorithm.group_size`, for example. \
A preset changes some of the defaults below; the form shows its value beside each setting.
"""
COLUMNS = "\n| setting | default | meaning |\n|---|---|---|\n"
INSTEAD_OF_NOTHING = "—"


def page() -> str:
    """The whole text."""
    return HEAD + "".join(_section(section) for section in sections())


def _section(section: KnobSection) -> str:
    text = f"\n## {section.name}\n{section.help}\n"
    for group, knobs in itertools.groupby(section.knobs, lambda knob: knob.path.rpartition(".")[0]):
        rows = list(knobs)
        if group != section.name:
            text += f"\n### {group}\n"
            if when := rows[0].when:
                text += f"Counts with `{'` or `'.join(when.split())}`.\n"
        text += COLUMNS + "".join(_row(knob) for knob in rows)
    return text


def _row(knob: Knob) -> str:
    allowed = ", ".join(f"`{choice}`" for choice in knob.choices) or knob.bounds
    default = f"`{knob.default}` {knob.unit}".strip() if knob.default else INSTEAD_OF_NOTHING
    meaning = " ".join(knob.help.split()) + (f" *Allowed:* {allowed}." if allowed else "")
    cells = (f"`{knob.path}`", default, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def main() -> int:
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
