"""GUI-Odyssey comes into the replay buffer."""

import json
from pathlib import Path

import pytest

from testing.demonstration_sets import imported, picture


def odyssey(folder: Path) -> Path:
    info = [
        ("CLICK", [[250, 500]]), ("TEXT", "tomatoes"), ("SCROLL", [[500, 900], [500, 100]]),
        ("CLICK", "KEY_BACK"), ("COMPLETE", ""),
    ]  # fmt: skip
    steps = []
    for index, (action, argument) in enumerate(info):
        name = f"0001_{index}.png"
        picture(folder / "screenshots" / name, f"#00{index:02d}00")
        steps.append(
            {"step": index, "screenshot": name, "action": action, "info": argument, "intention": "on"}
        )
    episode = {
        "episode_id": "0001",
        "device_info": {"product": "Pixel", "w": 1080, "h": 2400},
        "task_info": {"category": "Web_Shopping", "app": ["Shop"], "instruction": "Buy tomatoes."},
        "step_length": len(steps),
        "steps": steps,
    }
    (folder / "annotations").mkdir()
    (folder / "annotations" / "0001.json").write_text(json.dumps(episode))
    return folder


@pytest.mark.django_db
def test_gui_odyssey_comes_in(tmp_path: Path) -> None:
    entry = imported(odyssey(tmp_path / "set"), "gui-odyssey", tmp_path)
    assert (entry.trajectory.task.instruction, entry.family) == ("Buy tomatoes.", "Web_Shopping")
    actions = [turn.action for turn in entry.trajectory.turns.order_by("index")]
    assert [(action["kind"], action.get("x"), action.get("y")) for action in actions] == [
        ("click", 250, 250), ("type", None, None), ("drag", 500, 450), ("key", None, None),
        ("terminate", None, None),
    ]  # fmt: skip
    assert actions[3]["keys"] == ["alt", "Left"]
