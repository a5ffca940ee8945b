"""Numbers that once said something untrue: each stands here as a person reads it."""

import re

from django.utils import timezone
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_group, make_trajectory
from training.contracts.types import Limit, Source
from webapp.experiments.models import Experiment

SPAN = """(bar) => {
    const axis = bar.parentElement.getBoundingClientRect(), { left, right } = bar.getBoundingClientRect();
    return [(left - axis.left) / axis.width, (right - axis.left) / axis.width];
}"""
"""Where a bar begins and ends on its axis, as shares of it."""


def measured(people: People, name: str, sampled: tuple[int, int], greedy: tuple[int, int]) -> Experiment:
    """A finished run of 40 tasks, solved before and after."""
    experiment = make_experiment(team=people.team, status="finished", name=name, started_at=timezone.now())
    for place, (when, step) in enumerate((("before", 0), ("after", 20))):
        for temperature, won in ((1.0, sampled[place]), (0.0, greedy[place])):
            make_evaluation(
                experiment, name=when, step=step, won=won, total=40, temperature=temperature
            )  # fmt: skip
    return experiment


def test_a_run_that_only_became_surer_is_not_said_to_have_learned(sign_in: SignIn, people: People):
    surer = measured(people, "Surer", sampled=(20, 34), greedy=(30, 30))
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{surer.pk}/")
    expect(page.locator("#verdict")).to_contain_text("Sharpened, not learned")
    page.goto("/experiments/")
    row = page.get_by_role("row", name="Surer")
    for words in ("85 %", "75 %"):
        expect(row).to_contain_text(words)


def test_a_comparison_shows_sampled_beside_greedy_with_the_number_of_samples(sign_in: SignIn, people: People):
    ids = [measured(people, name, (20, 34), (30, 36)).pk for name in ("One", "Two")]
    page = sign_in(people.viewer)
    page.goto(f"/experiments/compare/?id={ids[0]}&id={ids[1]}")
    table = page.locator("table.compare")
    for words in ("Sampled", "Greedy", "85 %", "90 %", "40"):
        expect(table).to_contain_text(words)
    for kind, words in (("Sampled", "85 % [74, 96], n = 40"), ("Greedy", "90 % [81, 99], n = 40")):
        row = table.get_by_role("row", name=f"{kind}, 95 % interval")
        expect(row.locator("td")).to_have_text([words, words])
        left, right = row.locator(".ci i").first.evaluate(SPAN)
        low, high = (int(number) / 100 for number in re.findall(r"\d+(?=[,\]])", words))
        assert abs(left - low) < 0.02, "the bar begins where the words say"
        assert abs(right - high) < 0.02
    widths = page.evaluate(
        "() => [...document.querySelectorAll('table.compare .ci')].map((one) => one.offsetWidth)"
    )
    assert len(widths) >= 4
    assert len(set(widths)) == 1, "intervals are drawn on axes of one width"


def test_the_limit_that_ended_a_trajectory_is_named_with_where_it_is_set(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team)
    cut = make_trajectory(experiment=experiment, status="truncated", reward=0.0, limit=Limit.TASK_TURNS)
    cut.task.spec = {**cut.task.spec, "max_turns": 6}
    cut.task.save()
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{cut.pk}/")
    limit = page.locator("dt", has_text="Limit").locator("xpath=following-sibling::dd[1]")
    expect(limit).to_have_text("6 turns, the task's own")
    expect(limit).to_have_attribute("title", "It wins over desktops.max_turns")


def test_a_member_that_a_person_took_over_is_marked_and_counted_apart(sign_in: SignIn, people: People):
    group = make_group(team=people.team, size=2, num_final=2)
    make_trajectory(group=group, member=0)
    human = make_trajectory(group=group, member=1, source=Source.HUMAN)
    again = make_trajectory(group=group, member=1, retry_of=human)
    page = sign_in(people.viewer)
    page.goto(f"/groups/{group.pk}/")
    expect(page.get_by_text("2 of 2 finished")).to_contain_text("1 human takeover")
    marked = page.locator("article", has=page.get_by_text("Human", exact=True))
    expect(marked).to_have_count(1)
    expect(marked.locator(f'a[href="/trajectories/{human.pk}/"]').first).to_be_attached()
    expect(page.locator(f'article a[href="/trajectories/{again.pk}/"]').first).to_be_attached()


def test_a_step_has_one_number_on_every_page(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team)
    group = make_group(experiment=experiment, purpose="train", step=3, num_final=1, size=1)
    make_trajectory(group=group, step=3)
    page = sign_in(people.viewer)
    for url, where in (
        (f"/experiments/{experiment.pk}/?tab=groups&step=3", f"#group-{group.pk}"),
        (f"/groups/{group.pk}/", ".subtitle"),
    ):
        page.goto(url)
        expect(page.locator(where)).to_contain_text(re.compile("[Ss]tep 3"))
    page.goto(f"/trajectories/?experiment={experiment.pk}&step=3")
    expect(page.locator("tbody tr")).to_have_count(1)
