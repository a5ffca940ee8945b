"""An operator scans what is stored, follows the findings, and writes a scanner of their own."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment, make_group, make_trajectory, make_turn
from testing.openai_server import KEY, openai_server
from training.outgoing.secret_grants import add_grant
from webapp.dispatcher.work_kinds import kinds
from webapp.scanners.models import Scan, Scanner

SIZES = {"wide": (1280, 800), "phone": (390, 844)}


def furnish(people: People) -> int:
    """Two trajectories that do the same thing three times."""
    experiment = make_experiment(team=people.team, owner=people.operator, name="Menus")
    for _ in range(2):
        row = make_trajectory(group=make_group(experiment=experiment), turns=0, num_turns=3, reward=1.0)
        for index in range(3):
            click = {"kind": "click", "x": 40, "y": 40}
            make_turn(row, index, action=click, screen_changed=False)
    return experiment.pk


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("size", SIZES)
def test_a_shipped_scanner_is_previewed_run_and_followed(sign_in: SignIn, people: People, size: str) -> None:
    experiment = furnish(people)
    page = sign_in(people.operator)
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
    page.goto("/scanners/")
    assert fits(page)
    page.get_by_role("link", name="loops.v1").click()
    page.locator("select[name=slice]").select_option(f"train-{experiment}")
    expect(page.get_by_text("2 trajectories to read; no model is called.")).to_be_visible()
    assert fits(page)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Begins in a moment")).to_be_visible()
    kinds["scan"].run(Scan.objects.get().pk)
    expect(page.locator("[data-count=found]")).to_have_text("2")
    expect(page.get_by_text("Finished", exact=True)).to_be_visible()
    assert fits(page)
    page.get_by_role("link", name="All of loops.v1").click()
    page.get_by_role("link", name="In the list").click()
    expect(page.get_by_label("Found by")).to_have_value(str(Scanner.objects.get().pk))
    expect(page.locator(".trajectory-table tbody tr")).to_have_count(2)


def test_a_question_to_a_model_shows_what_it_costs(
    sign_in: SignIn, people: People, tmp_path: Path, settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = furnish(people)
    with openai_server(tmp_path / "log") as url:
        add_grant(settings.SECRETS_DIR, secret="judge-key", team=people.team.name, urls=[url])
        monkeypatch.setenv("DESKHAND_SECRET_JUDGE_KEY", KEY)
        page = sign_in(people.operator)
        page.goto("/scanners/wrong-reason.v1/")
        page.get_by_role("link", name="Set up its model").click()
        page.locator("[name=model-url]").fill(url)
        page.locator("[name=model-model]").fill("judge")
        page.locator("[name=model-secret]").fill("judge-key")
        page.locator("[name=model-price_in]").fill("2.5")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved as wrong-reason.v2.")).to_be_visible()
        page.locator("select[name=slice]").select_option(f"train-{experiment}")
        expect(page.get_by_text("at its prices")).to_be_visible()
        page.get_by_role("button", name="Start 2 calls").click()
        expect(page.get_by_text("Begins in a moment")).to_be_visible()
        kinds["scan"].run(Scan.objects.get().pk)
        expect(page.locator("[data-count=found]")).to_have_text("2")
        expect(page.get_by_text("nothing moved").first).to_be_visible()
    assert (tmp_path / "log").read_text().count("\n") == 2
