"""docs/presets.md names every preset, and its table of sizes is that of training/planning/gpu_layouts.py.

`python -m tests.training.planning.test_preset_docs` writes the table anew.
"""

import re
from pathlib import Path

import pytest

from training.planning.gpu_layouts import LAYOUTS, estimate
from training.planning.presets import GROUPS, load_preset, load_presets

PAGE = Path(__file__).resolve().parents[3] / "docs" / "presets.md"
MARKS = re.compile(r"(<!-- sizes: .*? -->\n)(.*?)(<!-- /sizes -->)", re.DOTALL)
HEAD = "| model | GPUs | layout | trainer | engine | in host memory |\n|---|---|---|---|---|---|\n"


def table() -> str:
    preset = load_preset("qwen3-vl-first-desk")
    assert preset is not None
    lines = []
    for (size, count), row in LAYOUTS.items():
        need = estimate(preset.config, size, count)
        trainer, host = sum(need.trainer.values()) / 1e9, need.host / 1e9
        place = "shared" if row.is_colocated else "own"
        cells = (
            size,
            str(count),
            row.words(),
            f"{trainer:.0f} GB",
            f"{need.engine / 1e9:.0f} GB, {place}",
            f"{host:.0f} GB" if host else "",
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)


def test_the_table_of_sizes_is_the_one_in_use() -> None:
    found = MARKS.search(PAGE.read_text())
    assert found is not None
    assert found[2] == table(), "run python -m tests.training.planning.test_preset_docs"


def test_every_preset_is_on_the_page_and_in_a_group() -> None:
    page = PAGE.read_text()
    assert [preset.name for preset in load_presets() if f"| `{preset.name}` |" not in page] == []
    assert {preset.group for preset in load_presets()} == set(GROUPS)


def test_presets_for_gpus_sample_with_sglang() -> None:
    for preset in load_presets():
        is_small = preset.config.model.path == "SmolLM2-135M-Instruct"  # bfloat16 is quick on a CPU, too
        if preset.config.model.dtype == "bfloat16" and not is_small:
            assert preset.config.engine.name == "sglang", preset.name


def test_a_preset_may_stand_on_another_one(tmp_path: Path) -> None:
    below = (
        "title: B\nsummary: b\ngroup: start\nconfig:\n  prompt:\n    style: tool-call\n    dialect: json\n"
    )
    (tmp_path / "below.yaml").write_text(below)
    over = tmp_path / "over.yaml"
    over.write_text(
        "title: O\nsummary: o\ngroup: start\nbase: below\nconfig:\n  prompt:\n    dialect: pyautogui\n"
    )
    prompt = {preset.name: preset.config.prompt for preset in load_presets(tmp_path)}["over"]
    assert (prompt.style, prompt.dialect) == ("tool-call", "pyautogui")
    over.write_text("title: O\nsummary: o\ngroup: start\nbase: other\n")
    with pytest.raises(ValueError, match=r"over.yaml: base: there is no file other.yaml"):
        load_presets(tmp_path)


if __name__ == "__main__":
    PAGE.write_text(MARKS.sub(lambda found: found[1] + table() + found[3], PAGE.read_text()))
