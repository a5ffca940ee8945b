"""Launching through the form: errors beside the fields, pre-flight while typing, YAML both ways."""

import re

import pytest
import yaml
from playwright.sync_api import Page, expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment
from webapp.experiments.models import Experiment


def open_launch(sign_in: SignIn, people: People, model: str) -> Page:
    page = sign_in(people.operator)
    page.goto("/experiments/launch/?preset=first-desk")
    page.get_by_label("Model", exact=True).fill(model)
    return page


def open_section(page: Page, name: str) -> None:
    page.locator(f"details[data-section={name}]").evaluate("element => element.open = true")


def knob(page: Page, path: str):
    return page.locator(f'[data-knob="{path}"]')


def test_an_impossible_value_is_named_at_its_field_and_nothing_typed_is_lost(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, launchable)
    group_size = knob(page, "algorithm.group_size")
    group_size.get_by_role("textbox").fill("1")
    page.get_by_label("Note").fill("keep this")

    expect(group_size.locator("[data-error]")).to_contain_text("algorithm.group_size")
    expect(page.locator("#preflight-result")).to_contain_text("Fix 1 setting")
    page.get_by_role("button", name="Launch", exact=True).click()

    expect(page.get_by_text("Not launched")).to_be_visible()
    expect(knob(page, "algorithm.group_size").get_by_role("textbox")).to_have_value("1")
    expect(page.get_by_label("Note")).to_have_value("keep this")
    assert not Experiment.objects.exists()

    group_size.get_by_role("textbox").fill("4")
    expect(page.locator("#preflight-result")).not_to_contain_text("Fix 1")
    expect(page.get_by_text("Not launched")).to_have_count(0)


def test_a_preset_is_changed_checked_and_launched(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people, launchable)
    page.get_by_label("Name", exact=True).first.fill("Smaller groups")
    knob(page, "algorithm.group_size").get_by_role("textbox").fill("2")

    preflight = page.locator("#preflight-result")
    expect(preflight).to_contain_text("Group size 2")
    expect(preflight.locator("[data-queue-position]")).to_contain_text("Next")
    page.get_by_role("button", name="Launch", exact=True).click()

    expect(page.get_by_role("heading", name="Smaller groups")).to_be_visible()
    expect(page.locator("[data-status=queued]").first).to_be_visible()
    experiment = Experiment.objects.get()
    assert experiment.preset == "first-desk"
    assert experiment.config["algorithm"]["group_size"] == 2
    assert experiment.config["model"]["path"] == launchable


def test_a_missing_model_keeps_the_launch_button_closed_until_it_is_corrected(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, "no-such-model")
    button = page.get_by_role("button", name="Launch", exact=True)
    expect(page.locator("#preflight-result")).to_contain_text("Model not found")
    expect(button).to_be_disabled()

    page.get_by_label("Model", exact=True).fill(launchable)
    expect(button).to_be_enabled()


def test_a_change_is_marked_counted_and_taken_back(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people, launchable)
    open_section(page, "algorithm")
    clip = knob(page, "algorithm.clip_high")
    clip.get_by_role("textbox").fill("0.4")
    badge = page.locator("details[data-section=algorithm] [data-changed-count]")
    expect(badge).to_have_text("1 changed")
    clip.get_by_role("button").click()
    expect(clip.get_by_role("textbox")).to_have_value("0.28")
    expect(badge).to_be_hidden()


def test_the_knob_search_leaves_only_what_matches(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people, launchable)
    page.get_by_label("Search settings").fill("group size")
    expect(knob(page, "algorithm.group_size")).to_be_visible()
    expect(page.locator("[data-knob]:visible")).to_have_count(1)


def test_the_search_shows_the_exact_name_first_and_what_is_off_last(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, launchable)
    page.get_by_label("Search settings").fill("learning rate")
    tops = page.locator("[data-knob]:visible").evaluate_all(
        "found => found.map(one => [one.getBoundingClientRect().top, one.dataset.knob])"
    )
    names = [name for _, name in sorted(tops)]
    assert names[0] == "optimiser.learning_rate"
    assert names.index("sft.learning_rate") > names.index("optimiser.learning_rate")
    expect(knob(page, "sft.learning_rate")).to_have_class(re.compile("is-off"))


def test_a_partial_file_changes_what_it_names_after_a_look_at_the_difference(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, launchable)
    families = knob(page, "tasks.families").get_by_role("textbox").input_value()
    text = "optimiser:\n  learning_rate: 0.001\nalgorithm:\n  num_steps: 6\n"
    file = {"name": "mine.yaml", "mimeType": "text/yaml", "buffer": text.encode()}
    rate = knob(page, "optimiser.learning_rate").get_by_role("textbox")
    for button in ("Keep the form", "Take these settings"):
        before = rate.input_value()
        page.locator("[data-import]").set_input_files(file)
        difference = page.get_by_role("dialog")
        expect(difference).to_contain_text("It changes 2 settings of this form")
        expect(difference.locator("li")).to_have_text(
            [re.compile("algorithm.num_steps"), re.compile(f"optimiser.learning_rate {before} → 0.001")]
        )
        difference.get_by_role("button", name=button).click()
    expect(rate).to_have_value("0.001")
    expect(knob(page, "algorithm.num_steps").get_by_role("textbox")).to_have_value("6")
    expect(knob(page, "tasks.families").get_by_role("textbox")).to_have_value(families)
    expect(knob(page, "model.path").get_by_role("combobox")).to_have_value(launchable)


def test_yaml_and_form_follow_each_other(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people, launchable)
    knob(page, "algorithm.num_steps").get_by_role("textbox").fill("7")
    page.get_by_role("tab", name="YAML").click()
    area = page.get_by_label("Config as YAML")
    expect(area).to_have_value(re.compile("num_steps: 7"))
    values = yaml.safe_load(area.input_value())
    values["algorithm"]["group_size"] = 6
    area.fill(yaml.safe_dump(values))
    page.get_by_role("tab", name="Form").click()
    expect(knob(page, "algorithm.group_size").get_by_role("textbox")).to_have_value("6")


def test_unknown_keys_of_an_import_are_named_at_their_lines_and_stop_the_launch(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, launchable)
    text = f"model:\n  path: {launchable}\nalgorithm:\n  group_size: 6\n  num_step: 3\nsurprise: 1\n"
    file = {"name": "mine.yaml", "mimeType": "text/yaml", "buffer": text.encode()}
    page.locator("[data-import]").set_input_files(file)
    page.get_by_role("button", name="Open as text").click()

    preflight = page.locator("#preflight-result")
    expect(preflight).to_contain_text("Fix 2 settings")
    expect(preflight).to_contain_text("algorithm.num_step line 5: unknown key")
    expect(preflight).to_contain_text("did you mean algorithm.num_steps?")
    expect(preflight).to_contain_text("surprise line 6: unknown key")
    button = page.get_by_role("button", name="Launch", exact=True)
    expect(button).to_be_disabled()
    area = page.get_by_label("Config as YAML")
    page.get_by_role("tab", name="Form").click()
    expect(area).to_have_value(text)

    area.fill(text.replace("num_step:", "num_steps:").replace("surprise: 1\n", ""))
    page.get_by_role("tab", name="Form").click()
    expect(knob(page, "algorithm.num_steps").get_by_role("textbox")).to_have_value("3")
    expect(button).to_be_enabled()


def test_a_file_that_cannot_be_read_replaces_a_changed_form_only_after_a_question(
    sign_in: SignIn, people: People, launchable: str
):
    page = open_launch(sign_in, people, launchable)
    seed = knob(page, "optimiser.seed").get_by_role("textbox")
    seed.fill("77")
    file = {"name": "mine.yaml", "mimeType": "text/yaml", "buffer": b"optimiser:\n  learning_rat: 1\n"}
    page.locator("[data-import]").set_input_files(file)
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("It cannot be read as settings")
    expect(question.locator("li")).to_contain_text(["model.path", "optimiser.seed 0 → 77"])
    question.get_by_role("button", name="Keep the form").click()
    expect(seed).to_have_value("77")
    expect(page.get_by_label("Config as YAML")).to_be_hidden()
    page.locator("[data-import]").set_input_files(file)
    question.get_by_role("button", name="Open as text").click()
    expect(page.get_by_label("Config as YAML")).to_have_value(re.compile("learning_rat: 1"))


def test_a_misspelt_family_is_refused(sign_in: SignIn, people: People, launchable: str):
    page = open_launch(sign_in, people, launchable)
    open_section(page, "tasks")
    knob(page, "tasks.families").get_by_role("textbox").fill("menu, meun")
    expect(page.locator("#preflight-result")).to_contain_text("No family 'meun' in the task set")
    expect(page.locator("#preflight-result")).to_contain_text(re.compile(r"did you mean menu\?(?!\.)"))
    expect(page.get_by_role("button", name="Launch", exact=True)).to_be_disabled()


def test_a_clone_lists_its_changes_from_its_parent_and_leaves_the_note(
    sign_in: SignIn, people: People, launchable: str
):
    parent = make_experiment(team=people.team, preset="first-desk", note="The old question")
    page = sign_in(people.operator)
    page.goto(f"/experiments/launch/?clone={parent.pk}")
    changes = page.locator("[data-parent-changes]")
    expect(changes).to_contain_text(f"it would repeat #{parent.pk}")
    expect(page.get_by_label("Note")).to_have_value("")
    page.locator("[data-changed-only]").uncheck()
    open_section(page, "algorithm")
    knob(page, "algorithm.num_steps").get_by_role("textbox").fill("77")
    expect(changes).to_contain_text("algorithm.num_steps")
    expect(changes.locator("li")).to_have_count(1)


@pytest.mark.parametrize("size", [(390, 844), (1280, 800), (1920, 1080)])
def test_the_launch_button_is_in_view_at_every_size(
    sign_in: SignIn, people: People, launchable: str, size: tuple[int, int]
):
    page = sign_in(people.operator)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/experiments/launch/")
    expect(page.locator("#preflight-result .check").first).to_be_attached()
    for place in (0, 1, 100_000):
        page.evaluate("y => window.scrollTo(0, y)", place)
        expect(page.locator("#launch-button")).to_be_in_viewport(ratio=1)
