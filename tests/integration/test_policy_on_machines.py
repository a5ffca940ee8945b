"""A policy learns on virtual machines: launched as a user launches it, seen as a user sees it.

Real processes throughout: supervisor, web, workers, trainer, policy server, desk host, QEMU, Chromium.
"""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testing.browser.chromium import chromium_page, sign_in
from testing.experiment_runs import describe, follow, launch, settings
from testing.private_installation import Instance
from testing.watch_installation import rows

ROOT = Path(__file__).resolve().parents[2]
IMAGES = Path(os.environ.get("DESKHAND_IMAGES_DIR") or ROOT / "var" / "images")
pytestmark = [
    pytest.mark.vm,
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.browser,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not (IMAGES / "debian-desk" / "image.json").exists() or shutil.which("qemu-system-x86_64") is None,
        reason="VIRTUAL MACHINES ARE NOT TESTED: no QEMU or no guest image; make guest-image",
    ),
]
LIMIT_S = 1500
NUM_STEPS = 3
GROUP_SIZE, GROUPS_PER_STEP = 4, 2
CHANGES = {
    "desktops.provider": "qemu",
    "desktops.num_desktops": 4,
    "desktops.trajectory_timeout_s": 600,
    "algorithm.num_steps": NUM_STEPS,
    "algorithm.group_size": GROUP_SIZE,
    "algorithm.groups_per_step": GROUPS_PER_STEP,
    "evaluation.before": False,
    "evaluation.after": False,
}


@pytest.fixture(scope="module")
def deskhand() -> Iterator[Instance]:
    with Instance(slots=4, env={"DESKHAND_IMAGES_DIR": str(IMAGES)}) as instance:
        yield instance


@pytest.fixture(scope="module")
def described(deskhand: Instance) -> dict[str, Any]:
    """The preset `first-desk` on virtual machines, until it has ended."""
    number = launch(deskhand, "--preset", "first-desk", *settings(CHANGES))
    return follow(deskhand, number, LIMIT_S)


def test_every_step_is_trained_on_scored_trajectories_of_machines(deskhand, described):
    assert described["status"] == "finished", described["message"]
    metrics = describe(deskhand, described["id"], "rollout/reward_mean", "optimiser/grad_norm")["metrics"]
    assert [step for step, _ in metrics["rollout/reward_mean"]] == [1, 2, 3]
    scored = rows(
        deskhand,
        "select d.provider, t.source, count(*) from trajectories_trajectory t"
        " join fleet_desktop d on d.id = t.desktop_id where t.reward is not null group by 1, 2",
    )
    assert scored == [("qemu", "policy", NUM_STEPS * GROUPS_PER_STEP * GROUP_SIZE)]
    assert rows(deskhand, "select id, error from trajectories_trajectory where status = 'errored'") == []


def test_the_policy_solves_some_tasks_on_machines(deskhand, described):
    """It was trained on X11 desktops of the same programs: a machine's picture must not be strange to it."""
    scores = [score for (score,) in rows(deskhand, "select score from trajectories_trajectory")]
    assert sum(score == 1.0 for score in scores) >= len(scores) / 8


def test_members_of_a_group_start_from_the_same_picture(deskhand, described):
    different = rows(
        deskhand,
        "select t.group_id, count(distinct r.frame) from trajectories_turnrecord r"
        ' join trajectories_trajectory t on t.id = r.trajectory_id where r."index" = 0 group by 1',
    )
    assert [count for _, count in different] == [1] * (NUM_STEPS * GROUPS_PER_STEP)


def look_at(deskhand: Instance, trajectory: int) -> tuple[list[int], int]:
    """Size of the picture that the viewer shows, and how many turns it lists."""
    with chromium_page() as page:
        page.set_default_timeout(60_000)
        sign_in(page, deskhand)
        page.goto(f"{deskhand.url}/trajectories/{trajectory}/")
        page.wait_for_function("() => document.querySelector('[data-image] img')?.naturalWidth > 0")
        size = page.eval_on_selector("[data-image] img", "image => [image.naturalWidth, image.naturalHeight]")
        cells = page.locator("[data-cell]:not([data-cell=end])").count()
        if folder := os.environ.get("DESKHAND_SHOTS"):
            page.screenshot(path=f"{folder}/machine-viewer.png")
    return size, cells


def test_the_viewer_shows_the_machines_screen(deskhand, described):
    ((longest, num_turns),) = rows(
        deskhand, "select id, num_turns from trajectories_trajectory order by num_turns desc, id limit 1"
    )
    with ThreadPoolExecutor(1) as elsewhere:  # tests of pages may have left a loop running in this thread
        assert elsewhere.submit(look_at, deskhand, longest).result() == ([512, 384], num_turns)


def test_one_task_of_each_family_holds_on_machines(deskhand):
    """Oracle 1.0 and idle 0.0, by the command that proves a task set."""
    output = deskhand.manage(
        "verify_tasks", "first-desk", "--provider", "qemu", "--limit", "1", timeout_s=LIMIT_S
    )
    families = {line.split()[0]: line.split() for line in output.splitlines()}
    supported = "select distinct family from experiments_taskrecord where status = 'supported'"
    assert set(families) == {family for (family,) in rows(deskhand, supported)}
    for words in families.values():
        assert words[1] == words[5] == words[-1] == "1", output
