"""Nine jobs of a day with the product, in Chromium with a stopwatch; clicks, keys and fields are counted.

    python -m benchmarks.web.jobs [--pictures FOLDER]

Starts a private installation with desktops and an env worker, fills it with the recorded sample, a run that
collapsed, a clone with its parent, a run of scripted agents that act at once and 1,000 replay entries. Then
it does each job at 1280 and at 390 pixels. `BEFORE` are the counts of the same jobs by hand, before the
product was changed for them.

Bar: of the jobs that were counted before, at most half the acts at 1280, and every job reaches its end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import finish, print_table
from testing.browser.chromium import chromium, sign_in
from testing.private_installation import REPOSITORY, Instance

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

SIZES = {"1280": (1280, 800), "390": (390, 844)}
LIMIT_MS = 60_000
LABELS = 30
BEFORE = {
    "1 launch, with a mistake": 3,  # tries until it was queued
    "2 take over a desktop of a short task": 3,  # tile, v, take over: and the task had ended
    "3 find what to change on a run that went bad": 3,  # run, alarms, alarm
    "4 decide 30 replay entries": LABELS,
    "5 compare two runs to their first divergence": 4,
    "6 make a task": 6,  # tries to save it
    "7 launch with another reward": 2,
    "8 find out who watched a desktop": None,
    "9 cancel a run": 3,
}
"""Job -> how often one acted, None = not counted."""


@dataclass
class Hand:  # a person, whose deeds are counted
    page: Page
    url: str
    acts: int = 0
    tries: int = 0
    notes: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Where the job begins."""
        self.page.goto(self.url + path)

    def click(self, target: Locator) -> None:
        self.acts += 1
        target.first.click()

    def fill(self, target: Locator, text: str) -> None:
        self.acts += 1
        target.first.fill(text)

    def press(self, key: str) -> None:
        self.acts += 1
        self.page.keyboard.press(key)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=name)


def launch(hand: Hand, world: dict[str, Any]) -> None:
    """The mistake is shown while one types; the launch button then works at once."""
    hand.go("/experiments/launch/?preset=first-desk")
    rate = hand.page.locator("[name='optimiser.learning_rate']")
    hand.page.wait_for_selector("#preflight-result[data-may-launch=yes]")
    rate.first.fill("0.o3")
    hand.page.get_by_text("Fix 1 setting").wait_for()
    rate.first.fill("0.0003")
    hand.page.wait_for_selector("#preflight-result[data-may-launch=yes]")
    hand.click(hand.page.locator("#launch-button"))
    hand.page.wait_for_url(re.compile(r"/experiments/\d+/$"))


def take_over(hand: Hand, world: dict[str, Any]) -> None:
    """Hold the next desktop, type, finish: two more acts than the job, which ends when one has control."""
    hand.go(f"/experiments/{world['live']}/?tab=desktops")
    hand.click(hand.button("Hold the next desktop"))
    hand.page.wait_for_selector('#desktop[data-screen="control"]', timeout=LIMIT_MS)
    hand.page.locator(".screen-type input").fill("grüße 你好")
    hand.page.locator(".screen-type button").click()
    hand.page.locator(".turn-row.is-human").filter(has_text="grüße").first.wait_for(timeout=LIMIT_MS)
    hand.page.locator('[data-do="finish"]').click()
    hand.page.wait_for_selector('#desktop[data-screen="ended"]', timeout=LIMIT_MS)


def remedy(hand: Hand, world: dict[str, Any]) -> None:
    hand.go("/")
    hand.click(hand.link("See why"))
    hand.page.locator(".verdict, [data-verdict]").first.wait_for()


def label(hand: Hand, world: dict[str, Any]) -> None:
    """One key for all near-identical entries, until 30 or more are decided."""
    hand.go("/replay/")
    hand.page.wait_for_selector("[data-image] img")
    count = hand.page.locator('[data-count="inbox"]')

    def waiting() -> int:
        return int(count.inner_text().replace(",", ""))

    first = waiting()
    while first - waiting() < LABELS > hand.acts:
        hand.press("r")
        hand.page.wait_for_timeout(400)
    hand.notes.append(f"{first - waiting()} entries decided")


def divergence(hand: Hand, world: dict[str, Any]) -> None:
    """Of a clone and what it was cloned from."""
    hand.go("/experiments/")
    hand.click(hand.link(f"Task by task against #{world['compared'][0]}"))
    hand.click(hand.page.locator("tr:has(.is-fixed) td a"))
    hand.page.get_by_text("First divergence: turn").first.wait_for()


def make_task(hand: Hand, world: dict[str, Any]) -> None:
    """By doing it; a try is a press on Save."""
    page = hand.page
    hand.go("/tasks/")
    hand.click(hand.link("New task"))
    hand.click(hand.button("Open a desktop"))
    page.wait_for_selector('#desktop[data-screen="control"]', timeout=LIMIT_MS)
    panel = page.get_by_role("region", name="Make a task")
    hand.fill(panel.get_by_label("Open a program"), "mousepad plan.txt")
    hand.click(panel.get_by_role("button", name="Open", exact=True))
    page.wait_for_timeout(2500)
    hand.click(panel.get_by_role("button", name="Start here"))
    panel.get_by_role("heading", name="2. Do the task once").wait_for(timeout=LIMIT_MS)
    page.locator("[data-screen] canvas").focus()
    page.keyboard.type("blue hen", delay=20)
    page.keyboard.press("Control+s")
    page.wait_for_timeout(1500)
    hand.click(hand.button("Done"))
    page.wait_for_url("**/task-editor/?draft=*", timeout=LIMIT_MS)
    hand.fill(page.get_by_label("Instruction"), "Write blue hen into the plan and save it.")
    page.get_by_role("button", name="Try it").click()
    page.get_by_text("1 of 1 run scored 1").wait_for(timeout=LIMIT_MS)
    hand.fill(page.get_by_label("Task set"), f"mine-{page.viewport_size['width']}")
    hand.tries += 1
    hand.click(hand.button("Save"))
    page.get_by_role("heading", name="Oracle").wait_for()


def reward(hand: Hand, world: dict[str, Any]) -> None:
    hand.go("/rewards/")
    hand.click(hand.button("Save and launch"))
    hand.page.wait_for_url("**/experiments/launch/**")
    hand.page.wait_for_selector("#preflight-result[data-may-launch=yes]")


def audit(hand: Hand, world: dict[str, Any]) -> None:
    hand.go("/")
    hand.press("Control+k")
    hand.page.keyboard.type("audit", delay=10)
    hand.page.wait_for_timeout(500)
    hand.press("Enter")
    hand.page.wait_for_url("**/audit/**")
    hand.page.get_by_text("screen").first.wait_for()


def cancel(hand: Hand, world: dict[str, Any]) -> None:
    """Of one that waits: it can be undone, so nothing asks first."""
    hand.go(f"/experiments/{world['cancelled'].pop()}/")
    hand.click(hand.button("Cancel"))
    hand.button("Undo").wait_for()


JOBS: dict[str, Callable[[Hand, dict[str, Any]], None]] = dict(
    zip(BEFORE, (launch, take_over, remedy, label, divergence, make_task, reward, audit, cancel), strict=True)
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each job's end")
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        print(json.dumps(fill()))
        return 0
    jobs: dict[str, Any] = {}
    with Instance(without=["gpu"], slots=3, env_workers=1) as deskhand:
        command = [sys.executable, "-m", "benchmarks.web.jobs", "--fill"]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=deskhand.environment, check=True, stdout=subprocess.PIPE
        )
        world = json.loads(done.stdout.splitlines()[-1])
        with chromium() as browser:
            for size, (width, height) in SIZES.items():
                page = browser.new_page(viewport={"width": width, "height": height})
                page.set_default_timeout(20_000)
                sign_in(page, deskhand)
                for name, job in JOBS.items():
                    found = jobs.setdefault(name, {"before": BEFORE[name]})
                    found[size] = do(
                        job, Hand(page, deskhand.url), world, options.pictures, f"{name[0]}-{size}"
                    )
                page.close()
    ended = [size for job in jobs.values() for size in SIZES if job[size]["error"]]
    halved = {name: job["before"] >= 2 * job["1280"]["acts"] for name, job in jobs.items() if job["before"]}
    rows = [(name, job["before"], job["1280"]["acts"], job["390"]["acts"]) for name, job in jobs.items()]
    print_table(("job", "before", "acts at 1280", "at 390"), rows)
    figures = {
        "jobs": jobs,
        "num_dead_ends": len(ended),
        "halved": halved,
        "num_halved": sum(halved.values()),
    }
    return finish("jobs", figures, passed=not ended and all(halved.values()))


def do(
    job: Callable[..., None], hand: Hand, world: dict[str, Any], pictures: Path | None, name: str
) -> dict[str, Any]:
    """One job with the stopwatch."""
    from playwright.sync_api import Error

    error, began = "", time.monotonic()
    try:
        job(hand, world)
    except Error as failed:
        error = str(failed).strip().splitlines()[0][:200]
        print(f"{name}: {failed}", file=sys.stderr)
    spent_s = round(time.monotonic() - began, 1)
    if pictures:
        pictures.mkdir(parents=True, exist_ok=True)
        hand.page.screenshot(path=str(pictures / f"{name}.png"))
    acts = hand.tries or hand.acts
    return {"acts": acts, "all_acts": hand.acts, "seconds": spent_s, "error": error, "notes": hand.notes}


def fill() -> dict[str, Any]:
    """What the jobs find. Runs in the installation's environment."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    from django.utils import timezone

    from benchmarks.web.fill_buffer import compare, fill_buffer
    from testing.evaluation_rows import make_evaluation, make_task_trajectories
    from testing.factories import make_experiment
    from training.contracts.trainer_reports import Alarm, StepAlarms
    from training.contracts.types import Purpose, Source
    from webapp.accounts.models import Team
    from webapp.experiments.models import TaskRecord, TaskSet
    from webapp.experiments.services.alarms import record_alarms
    from webapp.samples.services.samples import seed
    from webapp.trajectories.services.groups import GroupSpec, create_group

    team = Team.objects.order_by("id")[0]
    seed(team=team)
    now = timezone.now()
    bad = make_experiment(team=team, name="rate x 83", status="finished", started_at=now, ended_at=now)
    make_evaluation(bad, name="before", step=0, temperature=0.0, won=20, total=40)
    make_evaluation(bad, name="after", step=6, temperature=0.0, won=0, total=40)
    alarm = Alarm(name="parse_collapse", step=2, value=1, limit=0.3, message="Unparsable", remedy="Look")
    record_alarms(experiment_id=bad.pk, report=StepAlarms(step=2, alarms=(alarm,)))
    compared = [make_experiment(team=team, name="arm 1", status="finished", ended_at=now)]
    compared.append(
        make_experiment(team=team, name="arm 2", status="finished", ended_at=now, cloned_from=compared[0])
    )
    task_set = TaskSet.objects.get(name="first-desk", team=None)
    shared = TaskRecord.objects.filter(task_set=task_set, family="note", split="heldout")[0]
    for place, experiment in enumerate(compared):
        texts = ["blue hen", "blue hen"[place:]]
        tasks = {f"menu-{number}": (number < 20 + 10 * place, 1) for number in range(39)}
        tasks[shared.task_id] = make_task_trajectories(experiment, shared, [place], texts=texts)
        make_evaluation(experiment, name="before", step=0, temperature=0.0, won=10, total=40)
        make_evaluation(experiment, name="after", step=6, temperature=0.0, tasks=tasks)
    fill_buffer(team, 1000)
    compare()
    live = make_experiment(team=team, name="scripted agents", status="running", started_at=now)
    task = TaskRecord.objects.filter(task_set__name="first-desk", family="note", split="train")[0]
    request = GroupSpec(task=task, size=600, purpose=Purpose.TRAIN, source=Source.SCRIPTED, step=1)
    create_group(request=request, team_id=team.pk, experiment=live)
    cancelled = [make_experiment(team=team, status="queued").pk for _ in SIZES]
    return {
        "compared": [experiment.pk for experiment in compared],
        "live": live.pk,
        "cancelled": cancelled,
    }


if __name__ == "__main__":
    sys.exit(main())
