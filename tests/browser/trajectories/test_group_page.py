"""A group as its page shows it: members turn by turn, where they part, what they share; and their list."""

from django.utils import timezone
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_task_trajectories
from testing.factories import make_experiment, make_group, make_replay_entry, make_task, make_trajectory
from webapp.experiments.models import Experiment
from webapp.replay.models import ReplayUseRecord
from webapp.trajectories.models import Group


def parted_group(experiment: Experiment) -> Group:
    """Three members: all open, two of them save, the third closes and fails."""
    task = make_task(family="menu")
    _, _, pk = make_task_trajectories(
        experiment, task, [1.0, 1.0, 0.0], texts=["open", "look", "save"], purpose="train", step=4
    )
    group = Group.objects.get(pk=pk)
    *_, odd = group.trajectories.order_by("member")
    odd.turns.filter(index=2).update(action={"kind": "type", "text": "close"})
    for member, advantage in zip(group.trajectories.order_by("member"), (0.7, 0.7, -1.4), strict=True):
        group.trajectories.filter(pk=member.pk).update(advantage=advantage)
    return group


def test_members_stand_turn_by_turn_with_the_shared_ones_folded(sign_in: SignIn, people: People):
    group = parted_group(make_experiment(team=people.team))
    page = sign_in(people.viewer)
    page.goto(f"/groups/{group.pk}/")
    turns = page.locator("#turns")
    expect(turns).to_contain_text("First divergence: turn 3; members with the same letter act alike")
    heads = turns.locator("thead th")
    expect(heads).to_have_text(["Turn", "1 ✓ +0.70", "2 ✓ +0.70", "3 −1.40", "What they did"])

    shared = turns.locator("details")
    expect(shared.get_by_text("Type “open”")).to_be_hidden()
    shared.get_by_text("2 identical turns").click()
    expect(shared.locator("li")).to_have_text(["Type “open”", "Type “look”"])

    divergence = turns.locator("tr.is-divergence")
    expect(divergence.locator("td")).to_have_text(
        ["3", "A", "A", "B", "A Type “save” × 2B Type “close”"], use_inner_text=False
    )
    marked = page.locator(".lane-cell.is-divergence")
    expect(marked).to_have_count(1)
    marked.click()
    expect(page.locator("[data-place]")).to_have_text("Turn 3 of 4")


def test_the_groups_list_is_narrowed_by_every_filter(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team)
    parted = parted_group(experiment)
    flat = make_group(
        experiment=experiment, task=make_task(family="note"), step=5, reward_mean=0.0, reward_std=0.0,
        num_scored=2, num_final=2, finished_at=timezone.now(),
    )  # fmt: skip
    for member in range(2):
        make_trajectory(group=flat, member=member, reward=0.0, step=5)
    odd = parted.trajectories.order_by("member").last()
    entry = make_replay_entry(team=people.team, verdict="gold")
    ReplayUseRecord.objects.create(
        entry=entry, experiment=experiment, group=parted, replaced=odd, step=4, policy_age=1, advantage=1.0
    )
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/?tab=groups")
    cards = page.locator(".group-card")
    expect(cards).to_have_count(2)
    filters = page.get_by_role("search", name="Filter groups")
    for name, value, kept in (
        ("family", "note", flat),
        ("solved", "some", parted),
        ("solved", "none", flat),
        ("injected", "yes", parted),
    ):
        filters.locator(f"[name={name}]").select_option(value)
        expect(cards).to_have_count(1)
        expect(page.locator(f"#group-{kept.pk}")).to_be_visible()
        filters.locator(f"[name={name}]").select_option("")
        expect(cards).to_have_count(2)
    step = filters.get_by_label("Step, or a range such as 10-20")
    step.fill("4")
    step.press("Enter")
    expect(cards).to_have_count(1)
    expect(page.locator(f"#group-{parted.pk}")).to_be_visible()
    page.goto(f"/experiments/{experiment.pk}/?tab=groups")
    page.get_by_role("link", name="No variance").click()
    expect(cards).to_have_count(1)
    expect(page.locator(f"#group-{flat.pk}")).to_be_visible()
    cards.get_by_role("link", name=flat.task.instruction).click()
    expect(page.get_by_text("All act alike in every turn")).to_be_visible()
