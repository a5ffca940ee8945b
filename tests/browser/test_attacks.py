"""An operator attacks a task from its page and sees what was paid; a viewer sees it in the set's list."""

import pytest
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_task, make_task_set
from testing.openai_server import KEY, openai_server
from training.contracts.types import TrajectoryStatus
from training.outgoing.secret_grants import add_grant
from webapp.attacks.models import Exploit, ScriptedRun
from webapp.attacks.services.scripted_runs import note_scripted_run
from webapp.dispatcher.work_kinds import kinds
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.trajectories import end_trajectory


def end_runs(paid: str) -> None:
    """As a worker ends them."""
    for row in Trajectory.objects.filter(status="queued"):
        score = float(ScriptedRun.objects.get(group=row.group_id, member=row.member).name == paid)
        Trajectory.objects.filter(pk=row.pk).update(status=TrajectoryStatus.EVALUATING)
        end_trajectory(trajectory_id=row.pk, status=TrajectoryStatus.TERMINATED, score=score, reward=score)
        note_scripted_run(Trajectory.objects.get(pk=row.pk))


@pytest.mark.parametrize("width", [1280, 390])
def test_an_evaluator_is_attacked_from_its_page(sign_in: SignIn, people: People, width: int):
    task = make_task(task_set=make_task_set("menus"))
    page = sign_in(people.operator)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"/tasks/menus/{task.pk}/")
    attacks = page.get_by_role("region", name="Attacks").first
    expect(attacks.get_by_text("This version was not attacked yet.")).to_be_visible()
    attacks.get_by_role("button", name="Attack").click()
    expect(attacks.get_by_text("runs under way")).to_be_visible()
    end_runs("types the instruction and saves")
    expect(attacks.get_by_text("runs under way")).to_have_count(0)
    expect(attacks.get_by_role("link", name="types the instruction and saves")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    page.goto("/tasks/menus/")
    expect(page.get_by_text("1 exploit", exact=True)).to_be_visible()
    page.get_by_role("link", name=task.instruction).click()
    attacks.get_by_role("button", name="Check this version").click()
    expect(attacks.get_by_text("1 run under way")).to_be_visible()
    end_runs("")
    expect(attacks.get_by_text("dead", exact=True)).to_be_visible()
    attacks.get_by_label("Why it is no exploit").fill("the evaluator was away")
    attacks.get_by_role("button", name="Save").click()
    expect(attacks.get_by_label("Why it is no exploit")).to_have_value("the evaluator was away")
    assert Exploit.objects.get().dismissed_by == people.operator


@pytest.mark.parametrize("width", [1280, 390])
def test_a_language_model_writes_attackers(
    sign_in: SignIn, people: People, width: int, tmp_path, settings, monkeypatch
):
    task = make_task(task_set=make_task_set("menus"))
    monkeypatch.setenv("DESKHAND_SECRET_MODEL_KEY", KEY)
    page = sign_in(people.operator)
    page.set_viewport_size({"width": width, "height": 844})
    with openai_server(tmp_path / "log.jsonl") as url:
        add_grant(settings.SECRETS_DIR, secret="model-key", team=people.team.name, urls=[url])
        page.goto(f"/tasks/menus/{task.pk}/")
        page.get_by_text("Let a language model write attackers").click()
        page.get_by_label("Address").fill(url)
        page.get_by_label("Model", exact=True).fill("attacker")
        page.get_by_label("Secret").fill("model-key")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_text("1 run under way")).to_be_visible()
        kinds["model attack"].run(kinds["model attack"].next_waiting() or 0)
    expect(page.get_by_text("2 scripts")).to_be_visible()
    end_runs("model: types")
    expect(page.get_by_role("link", name="model: types")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
