"""axe-core finds nothing to object to on any page, in light and in dark."""

import json
from typing import Any, Literal

import pytest
from django.urls import resolve
from django.utils import timezone
from playwright.sync_api import Page

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation, make_task_trajectories
from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_trajectory,
    make_user,
)
from testing.page_addresses import PATHS, address
from testing.paths import REPOSITORY
from testing.web_world import World, make_world
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_reports import Alarm, StepAlarms
from webapp.accounts.models import Role
from webapp.experiments.models import CheckpointRecord, Evaluation, MetricPoint, TaskSet
from webapp.experiments.services import alarms
from webapp.experiments.sweep_plan import SweepPlan
from webapp.fleet.models import Desktop, Host
from webapp.fleet.services.workers import beat_worker
from webapp.reports.frozen_content import Choices
from webapp.reports.services.links import make_link, token_of
from webapp.reports.services.reports import write_version
from webapp.sweeps.services.sweeps import launch_sweep
from webapp.tasks_library.models import Draft

NODE_MODULES = REPOSITORY / "node_modules"
AXE = NODE_MODULES / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TABS = (
    "overview",
    "desktops",
    "groups",
    "log",
    "config",
    "checkpoints",
    "evaluations",
    "gpus",
    "attempts",
    "replay",
    "cost",
    "lineage",
)
MAX_SHOWN = 3
RULES_BY_THEME: dict[Literal["light", "dark"], dict[str, Any]] = {
    "light": {"type": "tag", "values": RULES},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
"""A theme changes colours alone."""
PAINT_MS = 150
NO_PAGE = "/no-such-page/"
PAGE_START = b"<!doctype html>"


def furnished(people: People) -> list[str]:
    """A team with some of everything; the paths of its pages."""
    experiment = make_experiment(
        team=people.team, owner=people.operator, started_at=timezone.now(), preset="first-desk"
    )
    other = make_experiment(team=people.team, status="queued")
    for step in (1, 2, 3):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=step, value=step / 4)
    fired = Alarm(name="zero_variance", step=3, value=1, limit=0.5, message="Flat groups", remedy="Look")
    alarms.record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=3, alarms=(fired,)))
    checkpoint = CheckpointRecord.objects.create(
        experiment=experiment, step=3, policy_version=3, path="/none/3", is_best=True
    )
    task = make_task(task_set=TaskSet.objects.get(name="first-desk"))
    evaluations = []
    for name, step, won, text in (("before", 0, 1.0, "save"), ("during", 3, 0.0, "close")):
        for temperature in (1.0, 0.0):
            outcome = make_task_trajectories(experiment, task, [won, 0.0], texts=["open", text])
            of_point = {"name": name, "step": step, "policy_version": step, "temperature": temperature}
            evaluations.append(make_evaluation(experiment, tasks={task.task_id: outcome}, **of_point))
    Evaluation.objects.filter(pk=evaluations[-1].pk).update(checkpoint=checkpoint)
    Host.objects.create(name="h", memory_mb=8000)
    beat_worker(name="env@h", queue="env", host="h", pid=1, slots=2, version="")
    values = {"host": "h", "provider": "x11", "width": 512, "height": 384}
    desktop = Desktop.objects.create(name="desk", phase="leased", **values)
    group = make_group(
        experiment=experiment, size=3, num_final=2, num_scored=2, reward_mean=0.5, reward_std=0.5
    )
    solved = make_trajectory(group=group, turns=3, advantage=0.7, desktop=desktop)
    make_trajectory(group=group, member=1, turns=2, reward=0.0, status="truncated", advantage=-0.7)
    make_trajectory(group=group, member=2, turns=1, status="running", desktop=desktop)
    seen = {"home": "/home/user", "programs": [], "folders": [], "files": [], "windows": []}
    note = {"path": "/home/user/note.txt", "stamp": "1", "bytes": 4, "text": "one\n"}
    Draft.objects.create(
        trajectory=solved, clean=seen, start=seen, end=seen | {"files": [note]}, start_turn=0
    )
    entry = make_replay_entry(trajectory=solved, verdict="gold", labelled_by=people.operator, tags=["clean"])
    make_replay_entry(team=people.team)
    plan = SweepPlan(num_seeds=2)
    sweep = launch_sweep(team=people.team, owner=None, name="seeds", config=ExperimentConfig(), plan=plan)
    choices = Choices(
        [experiment.pk], charts=["Success and reward"], with_tasks=True, trajectories=[solved.pk]
    )
    report = write_version(
        team=people.team,
        user=people.operator,
        title="Report",
        text="# Words\n\n[x](https://a.example)",
        choices=choices,
    )
    link = make_link(version=report, user=people.operator, days=7)
    return [
        f"/sweeps/{sweep.pk}/",
        "/",
        "/experiments/prices/",
        "/experiments/",
        f"/experiments/delete/?id={experiment.pk}",
        "/experiments/launch/",
        f"/experiments/launch/?clone={experiment.pk}&remedy=zero_variance",
        f"/experiments/{experiment.pk}/alarms/zero_variance/",
        "/queue/",
        *(f"/experiments/{experiment.pk}/?tab={tab}" for tab in TABS),
        f"/experiments/compare/?id={experiment.pk}&id={other.pk}",
        f"/experiments/tasks/?id={experiment.pk}",
        f"/experiments/tasks/c/{evaluations[0].pk}/{evaluations[2].pk}/{task.pk}/",
        "/trajectories/",
        f"/trajectories/{solved.pk}/",
        f"/trajectories/{solved.pk}/tree/",
        f"/groups/{group.pk}/",
        f"/trajectories/{solved.pk}/desktop/",
        "/demonstrate/",
        "/replay/",
        "/replay/?verdict=all",
        f"/replay/{entry.pk}/",
        "/replay/stats/",
        "/replay/transfer/",
        "/tasks/",
        "/new-task/",
        f"/task-editor/?draft={solved.pk}",
        "/tasks/first-desk/",
        f"/tasks/first-desk/{task.pk}/",
        "/rewards/",
        "/reports/",
        f"/reports/new/?id={experiment.pk}",
        f"/reports/{report.report_id}/",
        f"/r/{token_of(link)}/",
        "/fleet/",
        "/fleet/hosts/add/",
        f"/fleet/desktops/{desktop.name}/",
        "/team/",
        "/audit/",
        "/profile/",
        "/profile/password/",
        "/profile/two-step/",
        NO_PAGE,
    ]


def routes_of(paths: list[str]) -> set[str]:
    return {resolve(path.partition("?")[0]).route for path in paths if path != NO_PAGE}


def pages_of(world: World, page: Page) -> list[str]:
    """By the table of routes: what answers this page's person with a page, of rows that hold little."""
    answers = ((path, page.request.get(path)) for path in (address(route, world) for route in PATHS))
    return [path for path, answer in answers if answer.ok and answer.body().startswith(PAGE_START)]


def objections(page: Page, rules: dict[str, Any]) -> dict[str, list[str]]:
    """Rule -> what breaks it on this page."""
    found: dict[str, Any] = page.evaluate(
        "runOnly => axe.run(document, { runOnly, resultTypes: ['violations'] })", rules
    )
    return {
        rule["id"]: [f"{node['html'][:160]} | {node['failureSummary'][-120:]}" for node in rule["nodes"]][
            :MAX_SHOWN
        ]
        for rule in found["violations"]
    }


def objections_in_both_themes(page: Page, path: str) -> dict[str, dict[str, list[str]]]:
    """The page follows the system's theme while it is open, so that one load shows both."""
    page.goto(path)
    page.wait_for_function("() => !document.querySelector('.htmx-request')")
    page.wait_for_timeout(PAINT_MS)
    page.evaluate(AXE.read_text())
    found: dict[str, dict[str, list[str]]] = {}
    for theme, rules in RULES_BY_THEME.items():
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"() => document.documentElement.dataset.bsTheme === '{theme}'")
        if broken := objections(page, rules):
            found[f"{path} {theme}"] = broken
    return found


def walk(page: Page, paths: list[str]) -> None:
    """No page of these has an objection, light or dark."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found: dict[str, dict[str, list[str]]] = {}
    for path in paths:
        found |= objections_in_both_themes(page, path)
    assert found == {}, json.dumps(found, indent=1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("half", [0, 1])
def test_every_furnished_page_is_accessible(half: int, sign_in: SignIn, people: People, launchable: str):
    paths = furnished(people)[half::2]
    page = sign_in(make_user(Role.ADMIN, team=people.team))
    walk(page, paths)
    page.context.clear_cookies()
    walk(page, ["/login/"])


@pytest.mark.timeout(600)
def test_every_other_page_is_accessible(sign_in: SignIn, people: People, launchable: str):
    furnished_routes = routes_of(furnished(people))
    world = make_world()
    page = sign_in(world.users["owner"])
    others = [path for path in pages_of(world, page) if not routes_of([path]) <= furnished_routes]
    assert len(others) > 10
    walk(page, others)
