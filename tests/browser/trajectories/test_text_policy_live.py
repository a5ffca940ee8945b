"""A policy that reads only text, watched while it acts: the tree that it reads stands beside the picture."""

import json
import threading

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_attempt, make_experiment
from testing.workers.slot_thread import slot_thread
from testing.workers.text_policy import CHOOSE, click_crimson, served_policy
from training.contracts.types import Purpose
from webapp.experiments.models import AttemptStatus, TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.trajectories.services.groups import GroupSpec, create_group

pytestmark = [pytest.mark.desktop, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PROMPT = {"observation": ["accessibility"], "accessibility_form": "short", "coordinate_space": "screen"}
LIMIT_S = 120
WAIT = json.dumps({"action": "wait", "time": 0.1})


def test_its_tree_follows_it_turn_by_turn(sign_in: SignIn, people: People, desk_client, settings):
    settings.DESKHOST_SOCKET = desk_client.socket_path
    is_seen, answers = threading.Event(), 0

    def answer(text: str) -> str:
        nonlocal answers
        answers += 1
        if answers == 1:
            return WAIT
        assert is_seen.wait(LIMIT_S), "the page never showed the first turn"
        return click_crimson(text)

    import_task_set(name="texts", origin="test", tasks=[CHOOSE])
    desktops = {"num_desktops": 1, "retries": 0, "trajectory_timeout_s": LIMIT_S}
    config = {"desktops": desktops, "prompt": {**PROMPT, "style": "computer-use"}}
    experiment = make_experiment(team=people.team, config=config)
    with served_policy(answer) as (url, requests), slot_thread(patience_s=60):
        make_attempt(experiment, status=AttemptStatus.RUNNING, policy_url=url, policy_token="token")
        request = GroupSpec(task=TaskRecord.objects.get(), size=1, purpose=Purpose.TRAIN)
        group = create_group(request=request, team_id=people.team.pk, experiment=experiment, attempt=1)
        page: Page = sign_in(people.viewer)
        page.goto(f"/trajectories/{group.trajectories.get().pk}/")
        page.keyboard.press("a")
        rows = page.locator("[data-tree-rows] [data-row]")
        expect(rows.filter(has_text="Crimson")).to_have_count(1, timeout=LIMIT_S * 1000)
        expect(page.locator("[data-place]")).to_have_text("Turn 2 of 2")
        is_seen.set()
        expect(page.locator("[data-place]")).to_have_text("After the last turn", timeout=LIMIT_S * 1000)
        page.keyboard.press("k")
        expect(page.locator("[data-tree-state]")).to_contain_text("gone")
        expect(rows.filter(has_text="Crimson")).to_have_count(0)
    trajectory = group.trajectories.get()
    assert (trajectory.status, trajectory.score) == ("terminated", 1.0)
    assert not any(b"PNG" in body for body in requests), "it is blind but for the text"
