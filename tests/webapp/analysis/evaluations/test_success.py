"""Sampled and greedy success side by side, sharpening told from learning, and the matrix of tasks."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_task, make_task_set, make_team, make_user
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EngineFacts, EyeTest, Gap
from webapp.accounts.models import Role
from webapp.experiments.models import Experiment
from webapp.reports.frozen_content import Choices, frozen

pytestmark = pytest.mark.django_db

NUM_TASKS = 40


@pytest.fixture
def viewer(client: Client):
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    return team


def solved(*places: int, names: list[str] | None = None) -> dict[str, tuple[int, int]]:
    """Tasks menu-0 ... of which those at `places` are solved."""
    return {f"menu-{place}": (int(place in places), 1) for place in range(NUM_TASKS)}


def run(team: Any, sampled: tuple[range, range], greedy: tuple[range, range]) -> Experiment:
    """A finished experiment with an evaluation before and after at both temperatures."""
    experiment = make_experiment(team=team, status="finished", started_at=timezone.now())
    for place, (name, step) in enumerate((("before", 0), ("after", 20))):
        for temperature, which in ((1.0, sampled), (0.0, greedy)):
            make_evaluation(
                experiment, name=name, step=step, tasks=solved(*which[place]), temperature=temperature
            )
    return experiment


def described(experiment: Experiment) -> dict[str, Any]:
    output = io.StringIO()
    call_command("experiment", str(experiment.pk), stdout=output)
    return json.loads(output.getvalue())


def page_of(client: Client, experiment: Experiment, path: str = "/") -> str:
    return page_text(client.get(f"/experiments/{experiment.pk}{path}"))


def test_success_that_rises_only_when_sampled_was_sharpened(client: Client, viewer):
    experiment = run(viewer, (range(20), range(34)), (range(36), range(2, 36)))
    page = page_of(client, experiment)
    verdict = page_of(client, experiment, "/parts/verdict/")
    assert "Sharpened, not learned</strong>: sampled success 50 % before, 85 % after (+35 points" in verdict
    assert "Sharpened" not in page, "the verdict's line says it once"
    assert "0 tasks fixed, 2 regressed of 40" in page
    assert described(experiment)["success_change"]["is_sharpened"] is True
    answer = client.get(f"/api/v1/experiments/{experiment.pk}").json()
    assert answer["success_change"]["is_sharpened"] is True
    assert answer["success_change"]["greedy"]["p"] == 0.5


def test_success_that_rises_greedily_too_was_learned(client: Client, viewer):
    experiment = run(viewer, (range(10), range(34)), (range(12), range(36)))
    assert "Sharpened" not in page_of(client, experiment)
    change = described(experiment)["success_change"]
    assert (change["greedy"]["fixed"], change["is_sharpened"]) == (24, False)
    assert change["greedy"]["low"] > 0


def test_intervals_name_their_unit_and_nothing_has_no_sign(client: Client, viewer):
    experiment = run(viewer, (range(20), range(34)), (range(36), range(36)))
    other = run(viewer, (range(20), range(34)), (range(36), range(36)))
    pages = (
        page_of(client, experiment),
        compared(client, experiment, other),
        page_text(matrix(client, experiment)),
    )
    for page in pages:
        assert "0 points, 95 % interval 0 to 0 points" in page
        assert "+0 " not in page
        assert "−0 " not in page


def test_a_small_rise_when_sampled_is_not_called_sharpened(client: Client, viewer):
    assert "Sharpened" not in page_of(client, run(viewer, (range(20), range(24)), (range(36), range(36))))


def test_a_rise_within_chance_when_sampled_is_not_called_sharpened(client: Client, viewer):
    experiment = run(viewer, (range(10), range(5, 20)), (range(36), range(36)))
    change = described(experiment)["success_change"]["sampled"]
    assert (change["fixed"], change["regressed"]) == (10, 5)
    assert "Sharpened" not in page_of(client, experiment)


def test_both_stand_side_by_side_wherever_success_stands(client: Client, viewer):
    experiment = run(viewer, (range(20), range(34)), (range(36), range(35)))
    pages = {
        "overview": page_of(client, experiment),
        "list": page_text(client.get("/experiments/")),
        "compare": page_text(
            client.get(f"/experiments/compare/?id={experiment.pk}&id={make_experiment(team=viewer).pk}")
        ),
    }
    for name, page in pages.items():
        for share in ("50 %", "85 %", "90 %", "88 %"):
            assert share in page, (name, share)
        assert "Greedy" in page
    assert "n = 40" in pages["compare"].replace("&nbsp;", " ")
    tab = page_of(client, experiment, "/?tab=evaluations")
    assert tab.count("Sampled (T = 1)<") == tab.count("Greedy<") == 2


def compared(client: Client, *experiments: Experiment) -> str:
    query = "&".join(f"id={one.pk}" for one in experiments)
    return page_text(client.get(f"/experiments/compare/?{query}"))


def test_comparing_says_which_tasks_changed_and_whether_that_can_be_chance(client: Client, viewer):
    first, second = (run(viewer, (range(5), last), (range(5), last)) for last in (range(20), range(4, 33)))
    page = compared(client, first, second)
    assert "13 fixed, 4 regressed of 40, <strong>p = 0.049</strong>" in page
    assert "notice tone-warning" not in page


def test_comparing_warns_of_other_temperatures_and_other_tasks(client: Client, viewer):
    plain = run(viewer, (range(5), range(20)), (range(5), range(20)))
    config = ExperimentConfig(tasks={"task_set": "other"}).model_dump(mode="json")
    other = make_experiment(team=viewer, config=config, status="finished")
    make_evaluation(other, name="after", tasks={"menu-1": (1, 1), "new-1": (0, 1)}, temperature=0.8)
    page = compared(client, plain, other)
    assert "measured at different temperatures (0.8, 1)" in page
    assert "different task sets: first-desk, other" in page
    assert "1 are common to all" in page


def test_numbers_of_other_engines_are_compared_with_the_difference_named(client: Client, viewer):
    facts = EngineFacts(
        engine="sglang",
        version="0.5.16",
        kernels="fa3",
        precision="bfloat16",
        fingerprint="tokenizer:a",
        max_completion_tokens=40,
        max_context_tokens=900,
    )
    first = EyeTest(facts=facts, gaps=(Gap(name="800x600", nats=0.01),), limit=0.05, policy_version=1)
    newer = facts.model_copy(update={"version": "0.5.17"})
    blind = EyeTest(facts=newer, gaps=(Gap(name="800x600", nats=2.0),), limit=0.05, policy_version=1)
    one, two = (make_experiment(team=viewer, status="finished", started_at=timezone.now()) for _ in range(2))
    for experiment, name, stamp in ((one, "before", first), (one, "after", blind), (two, "after", first)):
        make_evaluation(experiment, name=name, tasks={"menu-1": (1, 1)}, temperature=1.0, eyes=stamp)
    words = "engine version 0.5.17 and 0.5.16, the first failed its eye test"
    assert f"Sampled success of #{one.pk} and #{two.pk} was measured otherwise: {words}." in compared(
        client, one, two
    )
    assert "measured otherwise: engine version 0.5.16 and 0.5.17" in described(one)["verdict"]["text"]
    page = page_of(client, one, "/?tab=evaluations")
    assert "sglang 0.5.17, fa3, bfloat16; 40 of 900 tokens" in page
    assert page.count("reads otherwise</span>") == 1
    assert "FAILED: the engine reads otherwise than the trainer: 2.0000 nats at 800x600" in solved_rows([one])


def solved_rows(experiments: list[Experiment]) -> str:
    """What a report freezes of them."""
    return str(frozen(experiments[0].team, Choices(experiments=[one.pk for one in experiments])))


# --- the matrix --------------------------------------------------------------------------------------


@pytest.fixture
def tasks(viewer):
    task_set = make_task_set("first-desk")
    return [
        make_task(task_set=task_set, family=family) for family in ("menu", "menu", "note", "note", "note")
    ]


def matrix(client: Client, experiment: Experiment, query: str = "") -> Any:
    response = client.get(f"/experiments/tasks/?id={experiment.pk}{query}")
    assert response.status_code == 200
    return response


def test_the_matrix_tells_regressed_fixed_flaky_and_failing_tasks_apart(client: Client, viewer, tasks):
    experiment = make_experiment(team=viewer)
    worse, better, flaky, failing, solid = (task.task_id for task in tasks)
    outcomes = {worse: "101100", better: "000011", flaky: "100100", failing: "000000", solid: "111111"}
    # Six evaluations; `flaky` ends where it began.
    outcomes[worse], outcomes[flaky] = "111100", "101010"
    for step in range(6):
        found = {name: (int(marks[step]), 1) for name, marks in outcomes.items()}
        for temperature in (1.0, 0.0):
            make_evaluation(experiment, name="during", step=step, tasks=found, temperature=temperature)

    def rows(query: str) -> set[str]:
        return {row.name for row in matrix(client, experiment, query).context["page"].object_list}

    assert rows("") == set(outcomes)
    assert rows("&show=regressed") == {worse, flaky}
    assert rows("&show=fixed") == {better}
    assert rows("&show=flaky") == {flaky}
    assert rows("&show=failing") == {failing}
    assert rows("&family=menu") == {worse, better}
    page = page_text(matrix(client, experiment))
    assert "Greedy: 1 fixed, 2 regressed, p = 1.00" in page
    only = page_text(matrix(client, experiment, "&family=menu"))
    assert "Greedy: 1 fixed, 1 regressed" in only, "the test is of the tasks that are shown"


def test_several_samples_stand_beside_the_greedy_one(client: Client, viewer, tasks):
    experiment = make_experiment(team=viewer)
    name = tasks[0].task_id
    make_evaluation(experiment, tasks={name: (2, 3)})
    greedy = make_evaluation(experiment, tasks={name: (0, 1)}, temperature=0.0)
    page = page_text(matrix(client, experiment))
    assert f'<td class="m1"><a href="c/{greedy.pk}/{greedy.pk}/{tasks[0].pk}/">2/3<b>✗</b></a></td>' in page


def test_another_teams_experiment_shows_nothing(client: Client, viewer):
    other = make_experiment()
    make_evaluation(other, tasks=solved(1))
    assert "Nothing to show yet" in page_text(matrix(client, other))


@pytest.mark.parametrize("query", ["&from=x&to=-1", "&page=x", "&by=no", "&show=no", "&level=²", "&id=²"])
def test_a_strange_address_is_read_as_far_as_it_goes(client: Client, viewer, tasks, query: str):
    experiment = make_experiment(team=viewer)
    make_evaluation(experiment, tasks={tasks[0].task_id: (1, 1)})
    matrix(client, experiment, query)


def test_an_evaluation_without_results_by_task_is_no_column_of_zeros(client: Client, viewer, tasks):
    """Older versions stored totals only."""
    experiment = make_experiment(team=viewer)
    make_evaluation(experiment, tasks={tasks[0].task_id: (1, 1)}).tasks.delete()
    page = page_text(matrix(client, experiment))
    assert "Two evaluations of the same tasks are needed" in page
