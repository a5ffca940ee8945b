"""The verdict of a run, by evaluations and series as runs leave them."""

from typing import Any

import pytest
from django.test import Client

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_team, make_user
from testing.page_text import page_text
from training.contracts.trainer_reports import Alarm, StepAlarms
from training.planning.presets import load_preset
from webapp.analysis.verdict.sentence import described
from webapp.experiments.models import Experiment, MetricPoint
from webapp.experiments.services.alarms import record_alarms

pytestmark = pytest.mark.django_db
NUM_TASKS = 72


def outcomes(solved: int) -> dict[str, tuple[int, int]]:
    """The first tasks are those that are solved."""
    return {f"menu-{place}": (int(place < solved), 1) for place in range(NUM_TASKS)}


def run(
    *greedy: int, sampled: tuple[int, ...] = (), status: str = "finished", team: Any = None, **changes: Any
) -> Experiment:
    """First desk with an evaluation every ten steps: solved tasks of 72, the first one before training."""
    config = load_preset("first-desk").config.model_dump(mode="json")
    for path, value in changes.items():
        section, name = path.split("__")
        config[section][name] = value
    experiment = make_experiment(
        team=team or make_team(),
        status=status,
        preset="first-desk",
        config=config,
        started_at="2026-11-26T09:00Z",
    )
    for kind, values in ((0.0, greedy), (1.0, sampled)):
        for place, number in enumerate(values):
            name = "before" if place == 0 else "after" if place == len(values) - 1 else f"step-{place}"
            make_evaluation(experiment, name=name, step=10 * place, tasks=outcomes(number), temperature=kind)
    return experiment


def series(experiment: Experiment, name: str, *values: float) -> None:
    for step, value in enumerate(values, start=1):
        MetricPoint.objects.create(experiment=experiment, name=name, step=step, value=value)


def verdict(experiment: Experiment) -> dict[str, Any]:
    found = described(experiment)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("given", "outcome", "since"),
    [
        ({"greedy": (12, 40, 50)}, "learned", 10),
        ({"greedy": (12, 13, 50)}, "learned", 20),
        ({"greedy": (12, 40, 70)}, "solved", 10),
        ({"greedy": (30, 31), "sampled": (20, 45)}, "sharpened", None),
        ({"greedy": (30, 33), "sampled": (28, 30)}, "flat", None),
        ({"greedy": (30, 20)}, "worse", 10),
        ({"greedy": (30, 3)}, "collapsed", 10),
        ({"greedy": (30,)}, "unknown", None),
        ({"greedy": ()}, "unknown", None),
        ({"greedy": (), "sampled": (20, 45)}, "unknown", None),
        ({"greedy": (30,), "status": "running"}, "running", None),
    ],
)
def test_the_outcome_follows_from_paired_evaluations(
    given: dict[str, Any], outcome: str, since: int | None
) -> None:
    greedy = given.pop("greedy")
    found = verdict(run(*greedy, **given))
    assert (found["outcome"], found["since_step"]) == (outcome, since)
    assert since is None or f" by step {since}: " in found["text"]
    assert found["remedy"] == {} or outcome in ("worse", "collapsed")


def test_a_run_that_destroyed_itself_names_the_rate_and_takes_it_back() -> None:
    rate = load_preset("first-desk").config.optimiser.learning_rate
    experiment = run(27, 0, optimiser__learning_rate=83 * rate)
    series(experiment, "rollout/success", 0.38, 0.0, 0.0, 0.0, 0.0, 0.0)
    series(experiment, "optimiser/grad_norm", 1.0, 0.0, 0.0)
    found = verdict(experiment)
    assert (found["outcome"], found["since_step"]) == ("collapsed", 2)
    assert "greedy success 38 % before, 0 % after (−38 points, p < 0.001, n = 72)" in found["text"]
    assert "learning rate is 83 times that of the preset" in found["text"]
    assert found["remedy"] == {"optimiser.learning_rate": str(rate)}


def test_a_run_on_lost_families_names_them_and_leaves_the_optimiser_alone() -> None:
    experiment = run(10, 12, tasks__families=[], optimiser__learning_rate=0.001)
    before = experiment.evaluations.get(name="before")
    before.per_family = {"colour": [6, 20], "menu": [4, 20], "table": [0, 16], "form": [0, 16]}
    before.save()
    alarm = Alarm(name="parse_collapse", step=1, value=0.6, limit=0.3, message="!", remedy="Look")
    record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=1, alarms=(alarm,)))
    found = verdict(experiment)
    assert found["outcome"] == "flat"
    assert "No task of form, table was solved before the first step" in found["text"]
    assert list(found["remedy"]) == ["tasks.families"]
    before.per_family = {"colour": [1, 2], "menu": [1, 2], "table": [0, 2]}
    before.save()
    assert "was solved before" not in verdict(experiment)["text"], "two failures are chance"


def test_a_run_that_solves_and_babbles_is_no_success() -> None:
    experiment = run(12, 64, algorithm__void_turns="keep", rewards__preset="first-desk.v1")
    after = experiment.evaluations.get(name="after")
    after.num_solved_at_limit, after.solved, after.solved_low, after.solved_high = 30, 34 / 72, 0.36, 0.59
    after.save()
    experiment.evaluations.filter(name="before").update(
        num_solved_at_limit=0, solved=12 / 72, solved_low=0.1, solved_high=0.27
    )
    found = verdict(experiment)
    assert found["outcome"] == "babbles"
    assert "30 more only at a limit" in found["text"]
    assert found["remedy"] == {"algorithm.void_turns": "no_credit", "rewards.preset": "first-desk.v2"}


def test_a_collapse_shows_while_it_runs_before_any_second_evaluation() -> None:
    experiment = run(30, status="running")
    series(experiment, "rollout/success", 0.4, 0.5, 0.45, 0.1, 0.0, 0.0, 0.02)
    found = verdict(experiment)
    assert found["text"].startswith("So far: collapsed by step 4")


def test_an_odd_setting_is_named_at_once_and_set_back_only_where_something_went_wrong() -> None:
    found = verdict(run(30, status="running", optimiser__learning_rate=0.5))
    assert "learning rate" in found["text"]
    assert found["remedy"] == {}


def test_page_list_and_api_say_the_same(client: Client) -> None:
    team = make_team()
    experiment = run(27, 0, team=team, optimiser__learning_rate=0.5)
    client.force_login(make_user("operator", team=team))
    page = client.get(f"/experiments/{experiment.pk}/parts/verdict/")
    assert "Collapsed by step 10" in page_text(page)
    assert "Collapsed" in page_text(client.get("/experiments/"))
    answer = client.get(f"/api/v1/experiments/{experiment.pk}").json()["verdict"]
    assert answer["outcome"] == "collapsed"
    form = client.get(f"/experiments/launch/?clone={experiment.pk}&remedy=verdict")
    assert ">Collapsed</a></strong>" in form.content.decode()
    (path,) = answer["remedy"]
    assert f'name="{path}"' in form.content.decode()
    assert answer["remedy"][path] in form.content.decode()


def test_experiments_that_only_measure_and_those_that_wait_have_none() -> None:
    assert described(run(30, evaluation__only=True)) is None
    assert described(make_experiment()) is None
