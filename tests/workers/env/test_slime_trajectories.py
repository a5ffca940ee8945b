"""Ten trajectories on real desktops: the preset's number against one that is derived from the raw recording.

What is derived here reads completions, screenshots, trees and terminals themselves, and none of our parsing,
measuring or terms.
"""

import json
import os
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from testing.slime_trajectories import MAX_TURNS, SCRIPTS, Played, Script, Seen, play
from training.contracts.config import RewardConfig
from training.rewards import compute_reward
from workers.desktops.contract import DesktopSpec
from workers.desktops.leased_desktop import DesktopEnv

pytestmark = [pytest.mark.desktop, pytest.mark.slow]


@pytest.fixture
def accessible(desk_client) -> Iterator[DesktopEnv]:
    """A clean desktop whose programs publish their widgets."""
    spec = DesktopSpec(accessibility=True)
    lease = desk_client.acquire("x11", spec, holder=f"tests-{os.getpid()}", ttl_s=120)
    with DesktopEnv(desk_client, lease) as desktop:
        yield desktop


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_reward_is_what_the_raw_recording_gives(accessible, script):
    played = play(accessible, script)
    ours = compute_reward(
        played.turns, played.score, RewardConfig(preset="slime-osworld.v2"), max_turns=MAX_TURNS
    )
    assert ours.reward == pytest.approx(derived(script, played), abs=1e-6)
    assert played.score == (1.0 if "oracle" in script.name else 0.0)
    if script.has_shell:
        assert played.seen[-1].terminal.startswith("user@desk")


def call_of(completion: str) -> tuple[str, str, tuple | None]:
    """Name, first quoted text and remembered point of a completion's pyautogui call."""
    found = re.search(r'\{"name".*\}', completion)
    if found is None:
        return "unknown", "", None
    values = json.loads(found[0])["arguments"]
    match values["action"]:
        case "left_click":
            return "click", "", tuple(values["coordinate"])
        case "type":
            return "write", values["text"], None
        case "key":
            return ("press" if len(values["keys"]) == 1 else "hotkey"), values["keys"][0], None
        case "left_click_drag":
            return "dragto", "", None
    return values["action"], "", None


def derived(script: Script, played: Played) -> float:
    """alpha 0.3, complexity low, the weights of grpo_config.yaml."""
    calls = [call_of(text) for text in script.completions]
    names, n = [name for name, _, _ in calls], len(calls)
    is_done = [name != "unknown" and not off(point) for name, _, point in calls]
    steps = list(zip(calls, pairwise(played.seen), strict=True))
    modalities = {word for word in ("click", "key", "scroll", "drag", "wait") for one in names if word in one}
    partial = (
        0.10 * sum(name != "unknown" for name in names) / n
        + 0.15 * sum(is_done) / n
        + 0.10 * sum(bool(word) and word.lower() in was.tree.lower() for (_, word, _), (was, _) in steps) / n
        + 0.15 * (0.4 * min(1, len(set(names)) / 3) + 0.4 + 0.2 * min(1, len(modalities) / 2))
        + 0.05 * (MAX_TURNS - n) / MAX_TURNS
        + 0.05 * sum(apart(was, now) for _, (was, now) in steps) / n
        + 0.05
        * sum(min(1, abs(len(now.tree) - len(was.tree)) / len(was.tree)) for _, (was, now) in steps)
        / n
        + 0.05 * sum(was.terminal != now.terminal for _, (was, now) in steps) / n
    )
    same = sum((a[0], a[2]) == (b[0], b[2]) for a, b in pairwise(calls))
    lost = (
        min(0.3, 0.4 * same / n) + min(0.15, 0.3 * names.count("unknown") / n) + 0.3 * names.count("wait") / n
    )
    return float(min(1.0, max(0.0, played.score + 0.3 * partial - lost)))


def off(point: tuple | None) -> bool:
    return point is not None and not (point[0] < 512 and point[1] < 384)


def apart(before: Seen, after: Seen) -> float:
    small = [grey(one.frame.png) for one in (before, after)]
    return float(np.abs(small[0] - small[1]).mean() / 255)


def grey(png: bytes) -> np.ndarray:
    image = Image.open(BytesIO(png)).convert("RGB").convert("L")
    return np.asarray(image.resize((64, 64), Image.Resampling.BILINEAR), dtype=float)
