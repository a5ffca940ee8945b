"""Reports: what is frozen stays, exports say the same as the page, text cannot carry a script."""

import csv
from io import StringIO

import pytest
from django.core.files.storage import default_storage
from django.test import Client

from testing.evaluation_rows import make_evaluation, make_task_trajectories
from testing.factories import (
    make_experiment,
    make_task,
    make_task_set,
    make_team,
    make_trajectory,
    make_user,
)
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Role, Team
from webapp.experiments.models import MetricPoint
from webapp.reports.exports import as_csv, latex, table_as_latex
from webapp.reports.frozen_content import picture_path
from webapp.reports.markdown import as_html
from webapp.reports.models import Report
from webapp.trajectories.models import Trajectory

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def operator(client: Client, team: Team) -> None:
    client.force_login(make_user(Role.OPERATOR, team=team))


def measured_experiment(team: Team, **values):
    experiment = make_experiment(team=team, status="finished", **values)
    for step in (1, 2, 3):
        MetricPoint.objects.create(experiment=experiment, name="rollout/success", step=step, value=step / 4)
    task = make_task(task_set=make_task_set("first-desk"), family="menu")
    for name, step, won in (("before", 0, 0.0), ("after", 3, 1.0)):
        outcome = make_task_trajectories(experiment, task, [won], texts=["open", "save"])
        make_evaluation(experiment, name=name, step=step, tasks={task.task_id: outcome}, temperature=0.0)
    return experiment


def write(client: Client, experiment, trajectory=None, path: str = "/reports/new/", **more: str):
    body = {
        "id": experiment.pk,
        "title": "Numbers",
        "text": "It **works**.",
        "charts": "Success and reward",
        "tasks": "on",
        "trajectories": str(trajectory.pk) if trajectory else "",
    }
    return client.post(path, body | more, follow=True)


def test_a_version_shows_what_was_true_and_a_new_one_changes_no_older_one(client, operator, team):
    experiment = measured_experiment(team, name="First name")
    trajectory = make_trajectory(team=team, turns=2)
    first = page_text(write(client, experiment, trajectory))
    for text in ("First name", "<strong>works</strong>", "fixed", trajectory.task.instruction, "Turn 2"):
        assert text in first, text
    report = Report.objects.get()
    url = f"/reports/{report.pk}/"

    experiment.name = "Second name"
    experiment.save()
    MetricPoint.objects.filter(experiment=experiment).delete()
    assert "Second name" not in page_text(client.get(url))
    second = page_text(write(client, experiment, path=f"{url}new/", title="Newer"))
    assert "Second name" in second
    again = page_text(client.get(f"{url}v/1/"))
    assert "First name" in again
    assert "Second name" not in again
    old = report.versions.get(number=1)
    assert old.content["charts"][0]["lines"] == [{"name": "success", "x": [1, 2, 3], "y": [0.25, 0.5, 0.75]}]
    (row,) = old.content["tables"][0]["rows"]
    assert row[3:5] == ["–", "100 % [100, 100], n = 1"]


def test_pictures_are_copies_that_outlive_their_trajectory(client, operator, team):
    trajectory = make_trajectory(team=team, turns=2)
    write(client, measured_experiment(team), trajectory)
    version = Report.objects.get().versions.get()
    frame = version.content["trajectories"][0]["turns"][0]["frame"]
    assert default_storage.exists(picture_path(version, frame))
    Trajectory.objects.filter(pk=trajectory.pk).delete()
    url = f"/reports/{version.report_id}/v/1/"
    answer = client.get(f"{url}{frame}.jpg")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    assert client.get(f"{url}{'0' * 64}.jpg").status_code == 404


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"title": "  "}, "needs a title"),
        ({"trajectories": "17, x"}, "not a whole number"),
        ({"trajectories": "1,2,3,4,5,6,7"}, "at most 6"),
        ({"trajectories": "999999"}, "no trajectory #999999"),
        ({"id": "999999"}, "no experiment #999999"),
        ({"text": "x" * 60_001}, "at most 60000"),
    ],
)
def test_what_cannot_be_frozen_is_refused_by_its_field_and_the_text_is_kept(
    client, operator, team, more: dict, problem: str
):
    answer = write(client, measured_experiment(team), **{"text": "my words", **more})
    assert answer.status_code == 422
    assert problem in page_text(answer)
    if "text" not in more:
        assert "my words" in page_text(answer)
    assert not Report.objects.exists()


def test_another_teams_trajectory_is_not_frozen(client, operator, team):
    theirs = make_trajectory()
    assert "no trajectory" in page_text(write(client, measured_experiment(team), theirs))


def test_every_chart_and_table_is_exported_as_csv_and_latex(client, operator, team):
    slow = ExperimentConfig().model_dump(mode="json")
    slow["optimiser"]["learning_rate"] = 1e-3
    pair = [measured_experiment(team), make_experiment(team=team, config=slow)]
    write(client, pair[0], id=[one.pk for one in pair], config="on")
    version = Report.objects.get().versions.get()
    blocks = [*version.content["charts"], *version.content["tables"]]
    assert [block["title"] for block in blocks] == [
        "Success and reward", "Experiments", "Tasks (sampled, greedy; ~ solved at a limit)",
        "Config differences",
    ]  # fmt: skip
    for block in blocks:
        for kind, mark in (("csv", ","), ("tex", "\\")):
            answer = client.get(f"/reports/{version.report_id}/v/1/{block['key']}.{kind}")
            assert mark in page_text(answer), (block["title"], kind)
            assert answer["Content-Disposition"].endswith(f'.{kind}"')
    rows = list(csv.reader(StringIO(as_csv(blocks[0]))))
    assert rows[:2] == [["series", "step", "value"], [f"#{pair[0].pk} success", "1", "0.25"]]
    assert "optimiser.learning" in as_csv(blocks[3])
    assert "learning\\_rate" in table_as_latex(blocks[3])


def test_exports_run_nothing():
    table = {"title": "x", "head": ["a"], "rows": [["=HYPERLINK(1)"], ["-5.0"], ["@x"], ["100 %"]]}
    assert as_csv(table).splitlines() == ["a", "'=HYPERLINK(1)", "-5.0", "'@x", "100 %"]
    assert latex(r"50 % of \input{a}_b & $x$ #1") == (r"50 \% of \textbackslash{}input\{a\}\_b \& \$x\$ \#1")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt&colon;alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "![x](http://elsewhere.example/a.png)",
        '[x](http://a "\\"onmouseover=alert(1)")',
        '<http://a/"onmouseover=alert(1)>',
        "[a]: javascript:alert(1)\n\n[a]",
        "`<b>`\n\n    <script>",
        "<details open ontoggle=alert(1)>",
    ],
)
def test_markdown_brings_no_markup_of_its_own(text: str):
    html = as_html(text)
    tags = {part.split(">")[0].split()[0].strip("/") for part in html.split("<")[1:]}
    assert tags <= {"p", "a", "code", "pre"}, html
    assert not [part for part in html.split("<") if part.startswith("a ") and "script:" in part.split(">")[0]]
    assert '<a href="data' not in html
    assert " onmouseover=" not in html.replace("%22onmouseover", "").replace("&quot;onmouseover", "")


def test_markdown_shows_what_it_should():
    html = as_html("# T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x](https://a.example)")
    assert "<h1>T</h1>" in html
    assert "<td>2</td>" in html
    assert 'href="https://a.example" rel="noopener noreferrer nofollow"' in html


def test_a_report_is_offered_every_experiment_with_the_chosen_ones_ticked(
    client: Client, operator, team: Team
):
    rows = [make_experiment(team=team, name=f"run {number}") for number in range(3)]
    make_experiment(name="another team's")
    page = page_text(client.get("/reports/new/", {"id": rows[1].pk}))
    assert [f'name="id" value="{row.pk}"' in page for row in rows] == [True] * 3
    assert page.count('name="id"') == 3
    assert f'name="id" value="{rows[1].pk}" checked' in page
    assert f'name="id" value="{rows[0].pk}" checked' not in page
    detail = page_text(client.get(f"/experiments/{rows[0].pk}/"))
    assert f'href="/reports/new/?id={rows[0].pk}"' in detail


def test_the_experiments_keep_the_order_in_which_they_were_compared(client: Client, operator, team: Team):
    """What changed is said from the first to the last."""
    rows = [make_experiment(team=team, name=f"run {number}") for number in range(3)]
    page = client.get("/reports/new/", {"id": [rows[0].pk, rows[2].pk]})
    assert [one.pk for one in page.context["experiments"]] == [rows[0].pk, rows[2].pk, rows[1].pk]
