"""From an experiment that got worse to the turn at which a task went wrong."""

from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.evaluation_rows import make_evaluation, make_task_trajectories
from testing.factories import make_experiment, make_task, make_task_set


def test_a_regressed_task_opens_at_its_first_divergence(sign_in: SignIn, people: People):
    task_set = make_task_set("first-desk")
    tasks = [make_task(task_set=task_set, family=family) for family in ("menu", "note", "note")]
    experiment = make_experiment(team=people.team, status="finished", name="Got worse")
    for name, step, solved in (("before", 0, (1, 0, 0)), ("after", 20, (0, 1, 0))):
        for temperature in (1.0, 0.0):
            outcomes = {
                task.task_id: make_task_trajectories(
                    experiment,
                    task,
                    [float(won)],
                    texts=["open", "save" if won else "close"],
                    temperature=temperature,
                )
                for task, won in zip(tasks, solved, strict=True)
            }
            make_evaluation(experiment, name=name, step=step, tasks=outcomes, temperature=temperature)

    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/")
    page.get_by_role("link", name="Task by task").click()
    expect(page.locator(".subtitle")).to_contain_text("Greedy: 1 fixed, 1 regressed, p = 1.00")
    page.get_by_role("link", name="Regressed 1").click()
    expect(page.locator("table.matrix tbody tr")).to_have_count(1)
    row = page.get_by_role("row", name=tasks[0].task_id)
    row.get_by_role("link").nth(1).click()

    expect(page.get_by_role("heading", level=1)).to_have_text(tasks[0].instruction)
    parted = page.locator("#divergence")
    expect(parted.locator(".aligned-words").nth(0)).to_contain_text("Type “save”")
    expect(parted.locator(".aligned-words").nth(1)).to_contain_text("Type “close”")
    shared = page.get_by_text("1 turn alike")
    expect(page.get_by_text("Type “open”").first).to_be_hidden()
    shared.click()
    expect(page.get_by_text("Type “open”").first).to_be_visible()
    page.get_by_role("link", name="Show it sampled (T = 1)").click()
    expect(page.locator(".aligned-head").first).to_contain_text("sampled (T = 1)")
