"""The list, the queue and the experiment page: what they show, in how many queries."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Role, Team
from webapp.analysis.series.metric_series import MAX_POINTS, thinned
from webapp.checkpoints.queries.checkpoint_rows import ROWS_PER_PAGE
from webapp.experiment_pages.experiment_table import PAGE_SIZE
from webapp.experiment_pages.page_counts import read_with_experiment, tab_counts
from webapp.experiment_pages.part_contexts import PARTS, TABS
from webapp.experiments import log_files
from webapp.experiments.log_files import first_error, level_of
from webapp.experiments.models import (
    AlarmRecord,
    Evaluation,
    Experiment,
    ExperimentStatus,
    MetricPoint,
    Stage,
)
from webapp.experiments.services.metrics import record_metrics
from webapp.experiments.services.statuses import record_incident
from webapp.fleet.models import Desktop, Worker
from webapp.replay.models import ReplayUseRecord

pytestmark = pytest.mark.django_db
MAX_QUERIES = 10
"""Of any page, session and person included."""


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def operator(client: Client, team: Team):
    user = make_user(Role.OPERATOR, team=team)
    client.force_login(user)
    return user


def evaluate(experiment, name: str, won: int) -> None:
    make_evaluation(experiment, name=name, won=won, total=72, low=0.1, high=0.9)


def test_the_list_shows_progress_and_the_gain_of_each_experiment(client: Client, operator, team: Team):
    experiment = make_experiment(team=team, owner=operator, name="Ours", status="finished", step=20)
    Stage.objects.create(
        experiment=experiment, name="grpo", position=0, status="finished", done=20, total=20, unit="steps"
    )
    evaluate(experiment, "before", 27)
    evaluate(experiment, "after", 63)
    make_experiment(name="Theirs")
    page = page_text(client.get("/experiments/"))
    assert "Ours" in page
    assert "+50 points" in page
    assert '<span class="sub">20 steps</span>' in page
    assert "Theirs" not in page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"status": "failed"}, {"b"}),
        ({"status": "unfinished"}, {"a"}),
        ({"q": "lr"}, {"b"}),
        ({"preset": "first-desk"}, {"a"}),
        ({"sort": "name"}, {"a", "b"}),
        ({"owner": "nobody"}, set()),
    ],
)
def test_the_url_filters_the_list(client: Client, operator, team: Team, query: dict, names: set):
    make_experiment(team=team, name="experiment-a", preset="first-desk")
    make_experiment(team=team, name="experiment-b", status="failed", note="lr too high")
    page = page_text(client.get("/experiments/", query))
    assert {name for name in "ab" if f"experiment-{name}" in page} == names


def test_the_list_needs_few_queries(client: Client, operator, team: Team, django_assert_max_num_queries):
    for _ in range(60):
        Stage.objects.create(experiment=make_experiment(team=team), name="grpo", position=0)
    with django_assert_max_num_queries(MAX_QUERIES):
        page = client.get("/experiments/")
    assert len(page.content) < 80_000
    assert page_text(page).count('id="experiment-') == PAGE_SIZE


def test_the_queue_is_shown_in_running_order_with_reasons_and_without_foreign_names(
    client: Client, operator, team: Team
):
    for name, priority in (("later", 0), ("sooner", 5)):
        make_experiment(team=team, name=name, priority=priority, status="queued")
    make_experiment(name="a secret", status="queued")
    page = page_text(client.get("/queue/"))
    assert page.index("sooner") < page.index("later")
    assert "No gpu worker is online" in page
    assert "a secret" not in page


def test_every_tab_and_part_can_be_drawn(client: Client, operator, team: Team):
    experiment = full_experiment(team)
    for tab in TABS:
        assert client.get(f"/experiments/{experiment.pk}/", {"tab": tab}).status_code == 200, tab
    for part in PARTS:
        assert client.get(f"/experiments/{experiment.pk}/parts/{part}/").status_code == 200, part
    assert client.get(f"/experiments/{experiment.pk}/parts/nonsense/").status_code == 404


def full_experiment(team: Team):
    experiment = make_experiment(team=team, started_at=timezone.now() - timedelta(minutes=2))
    Stage.objects.create(
        experiment=experiment,
        name="grpo",
        position=0,
        status="running",
        done=5,
        total=20,
        unit="steps",
        started_at=timezone.now() - timedelta(minutes=50, seconds=5),
    )
    values = {"step": 3, "value": 48.2, "limit": 10.0}
    AlarmRecord.objects.create(
        experiment=experiment,
        name="grad_norm",
        severity="critical",
        message="Too big",
        remedy="Halve it",
        **values,
    )
    record_incident(experiment.pk, "resumed", "Resumed from step 2")
    evaluate(experiment, "before", 30)
    group = make_group(experiment=experiment, size=2, num_scored=2, reward_mean=1.0, reward_std=0.0)
    group.finished_at = timezone.now()
    group.save()
    make_trajectory(group=group, turns=2, advantage=0.5)
    worker = Worker.objects.create(name="env", queue="env", host="h", pid=1, heartbeat_at=timezone.now())
    desktop = Desktop.objects.create(
        name="d1", host="h", provider="x11", width=512, height=384, worker=worker
    )
    make_trajectory(group=group, status="running", desktop=desktop, turns=2, member=1)
    return experiment


def test_the_overview_shows_alarms_stages_and_wall_and_fetches_its_groups(
    client: Client, operator, team: Team
):
    experiment = full_experiment(team)
    page = page_text(client.get(f"/experiments/{experiment.pk}/"))
    for wanted in ("48.2", "Halve it", "5 / 20 steps", "Click 50, 50", "Turn 2/8", "42 %", "1 <small>scored"):
        assert wanted in page, wanted
    assert "2 h 30 min left" in page
    address = f"/experiments/{experiment.pk}/parts/groups/?tab=overview"
    assert address in page
    assert "all 2 solved it" in page_text(client.get(address))


def test_an_alarm_that_was_quiet_at_the_last_step_did_not_stand_to_the_end(client: Client, operator, team):
    experiment = make_experiment(team=team, status="finished", step=4, ended_at=timezone.now())
    fired = {"severity": "warning", "value": 1, "limit": 0.8, "message": "Alike", "remedy": "Wait"}
    experiment.alarms.create(name="zero_variance", since_step=2, step=3, **fired)
    experiment.alarms.create(name="truncation", since_step=4, step=4, **fired)
    page = page_text(client.get(f"/experiments/{experiment.pk}/"))
    assert "Truncation (to the end), Groups without variance (steps 2–3)" in re.sub(r"\s+", " ", page)
    shown = page_text(client.get(f"/experiments/{experiment.pk}/alarms/zero_variance/"))
    assert "Fired at steps 2–3" in shown
    assert "to the end" not in shown


@pytest.mark.parametrize("status", ["running", "finished"])
def test_the_experiment_page_needs_few_queries_however_long_the_experiment_was(
    client: Client, operator, team: Team, django_assert_max_num_queries, status: str
):
    experiment = full_experiment(team)
    Experiment.objects.filter(pk=experiment.pk).update(status=status)
    url = f"/experiments/{experiment.pk}/"
    for size in (1, 12):
        make_long(experiment, size)
        client.get(url)  # the first look at a running one is noted
        for tab in TABS:
            with django_assert_max_num_queries(MAX_QUERIES):
                client.get(url, {"tab": tab})
        for address in (f"{url}metrics/", *(f"{url}parts/{part}/" for part in PARTS)):
            with django_assert_max_num_queries(MAX_QUERIES):
                client.get(address)


def make_long(experiment: Experiment, size: int) -> None:
    """`size` more of everything that grows."""
    first = experiment.checkpoints.count() + 1
    for step in range(first, first + size):
        make_trajectory(experiment=experiment, step=step)
        checkpoint = experiment.checkpoints.create(step=step, policy_version=step, path=f"/none/{step}")
        make_evaluation(experiment, name="during", step=step)
        on_demand = make_evaluation(make_experiment(team=experiment.team))
        Evaluation.objects.filter(pk=on_demand.pk).update(checkpoint=checkpoint)
        experiment.attempts.create(number=step, worker_name="gpu", resumed_step=step)
        record_incident(experiment.pk, "resumed", f"Resumed from step {step}")
        for name in ("loss/entropy", "checkpoint/rolled_back"):
            MetricPoint.objects.create(experiment=experiment, name=name, step=step, value=1)
    fired = {"severity": "warning", "value": 0.9, "limit": 0.5, "message": "It fell", "remedy": "Wait"}
    experiment.alarms.update_or_create(name="entropy_collapse", defaults={"step": first + size, **fired})


def test_many_checkpoints_come_in_pages_with_the_best_one_first(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    for step in range(1, 2 * ROWS_PER_PAGE + 1):
        experiment.checkpoints.create(step=step, policy_version=step, path=f"/none/{step}", is_best=step == 3)
    seen: list[int] = []
    for number in ("", 2):
        page = client.get(f"/experiments/{experiment.pk}/", {"tab": "checkpoints", "page": number})
        assert len(page.content) <= 100 * 1024
        text = page_text(page)
        seen += [int(step) for step in re.findall(r'<td class="num"><strong>(\d+)</strong>', text)]
        assert ("Older" in text, "Newer" in text) == (number == "", number == 2)
    assert seen == [3, *(step for step in range(2 * ROWS_PER_PAGE, 0, -1) if step != 3)]
    assert client.get(f"/experiments/{experiment.pk}/?tab=checkpoints&page=0").status_code == 400


def test_the_stage_in_which_an_experiment_failed_took_until_then(client: Client, operator, team: Team):
    now = timezone.now()
    experiment = make_experiment(team=team, status="failed", ended_at=now - timedelta(hours=1))
    started_at = now - timedelta(hours=1, minutes=7)
    Stage.objects.create(
        experiment=experiment, name="grpo", position=0, status="running", started_at=started_at
    )
    assert "7 min <" in page_text(client.get(f"/experiments/{experiment.pk}/"))


def test_groups_that_teach_nothing_are_listed_by_themselves(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    for std, finished in ((0.0, True), (0.4, True), (0.0, False)):
        group = make_group(experiment=experiment, size=2, num_scored=2, reward_mean=1.0, reward_std=std)
        group.finished_at = timezone.now() if finished else None
        group.save()
        make_trajectory(group=group)
    page = client.get(f"/experiments/{experiment.pk}/", {"tab": "groups", "purpose": "no-variance"})
    assert page_text(page).count('class="group-card') == 1


def test_groups_are_narrowed_by_step_family_and_how_many_solved_the_task(
    client: Client, operator, team: Team
):
    experiment = make_experiment(team=team)
    made = {}
    for name, step, scores in (("none", 1, (0, 0)), ("some", 2, (1, 0)), ("all", 2, (1, 1))):
        family = make_task(family=f"family-{name}")
        made[name] = make_group(experiment=experiment, step=step, task=family)
        for score in scores:
            make_trajectory(group=made[name], reward=float(score))
    ReplayUseRecord.objects.create(
        entry=make_replay_entry(team=team),
        experiment=experiment,
        group=made["none"],
        replaced=made["none"].trajectories.first(),
        step=1,
        advantage=1.0,
    )

    def shown(**query: str) -> set[str]:
        page = page_text(client.get(f"/experiments/{experiment.pk}/", {"tab": "groups", **query}))
        return {name for name, group in made.items() if f'id="group-{group.pk}"' in page}

    assert shown() == shown(step="²", solved="few") == {"none", "some", "all"}
    assert shown(step="2") == {"some", "all"}
    assert shown(family="family-all") == {"all"}
    assert [shown(solved=name) for name in made] == [{name} for name in made]
    assert shown(injected="yes") == {"none"}
    assert shown(step="1", solved="all") == set()


def test_groups_are_solved_as_far_as_the_agent_ended_them(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    at_limit, half = (make_group(experiment=experiment) for _ in range(2))
    for group, statuses in ((at_limit, ["truncated"] * 2), (half, ["truncated", "terminated"])):
        for member, status in enumerate(statuses):
            make_trajectory(group=group, member=member, status=status, reward=1.0)

    def shown(solved: str) -> set[int]:
        page = page_text(client.get(f"/experiments/{experiment.pk}/?tab=groups&solved={solved}"))
        return {group.pk for group in (at_limit, half) if f'id="group-{group.pk}"' in page}

    assert [shown(one) for one in ("none", "some", "all")] == [{at_limit.pk}, {half.pk}, set()]


def test_groups_appear_when_a_member_has_begun(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    trajectory = make_trajectory(group=make_group(experiment=experiment), status="queued")
    url = f"/experiments/{experiment.pk}/?tab=groups"
    assert "No group yet" in page_text(client.get(url))
    trajectory.status = "running"
    trajectory.save()
    assert page_text(client.get(url)).count('class="group-card') == 1


def test_a_viewer_sees_no_buttons_that_he_may_not_use(client: Client, team: Team):
    client.force_login(make_user(Role.VIEWER, team=team))
    page = page_text(client.get(f"/experiments/{make_experiment(team=team).pk}/"))
    assert "/cancel/" not in page
    assert "clone=" not in page


@pytest.mark.parametrize(
    ("action", "before", "after"),
    [
        ("pause", ExperimentStatus.RUNNING, ExperimentStatus.PAUSING),
        ("pause", ExperimentStatus.QUEUED, ExperimentStatus.PAUSED),
        ("resume", ExperimentStatus.PAUSED, ExperimentStatus.QUEUED),
        ("cancel", ExperimentStatus.RUNNING, ExperimentStatus.CANCELLING),
        ("cancel", ExperimentStatus.FINISHED, ExperimentStatus.FINISHED),
    ],
)
def test_an_action_changes_the_status_or_says_why_not(
    client: Client, operator, team: Team, action: str, before: str, after: str
):
    experiment = make_experiment(team=team, status=before)
    page = page_text(client.post(f"/experiments/{experiment.pk}/{action}/", follow=True))
    experiment.refresh_from_db()
    assert experiment.status == after
    assert ("cannot be cancelled" in page) == (before == after)


def test_metrics_come_from_a_step_on_with_gaps_for_what_is_not_finite(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    values = [0.5, float("-inf"), 1.0, float("inf"), float("nan"), 1.5]
    for step, value in enumerate(values):
        record_metrics(
            experiment_id=experiment.pk,
            attempt=1,
            step=step,
            policy_version=step,
            values={"loss/total": value, "loss/kl": 0.25},
        )
    address = f"/experiments/{experiment.pk}/metrics/"
    answer = client.get(address, {"from_step": "2"})
    assert not re.search("NaN|Infinity", page_text(answer)), "no JSON for a browser"
    series = answer.json()["series"]
    assert series["loss/kl"] == {"x": [2, 3, 4, 5], "y": [0.25] * 4}, "what is finite beside it is kept"
    assert series["loss/total"] == {"x": [2, 3, 4, 5], "y": [1.0, None, None, 1.5]}
    named = client.get(address, {"name": "loss/total"}).json()["series"]["loss/total"]
    assert named == {"x": [0, 1, 2, 3, 4, 5], "y": [0.5, None, 1.0, None, None, 1.5]}


def test_a_panel_shows_the_limit_of_its_guard(client: Client, operator, team: Team):
    answer = client.get(f"/experiments/{make_experiment(team=team).pk}/metrics/").json()
    limits = {panel["title"]: panel["limit"] for panel in answer["panels"]}
    assert limits["Groups without variance"] == 0.8


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        (True, "running", ["Not evaluated yet", "Measured at the end"]),
        (True, "cancelled", ["Not reached", "Not reached"]),
        (False, "finished", ["Not requested", "Not requested"]),
    ],
)
def test_a_success_that_was_not_measured_says_why(
    client: Client, operator, team: Team, asked: bool, status: str, said: list[str]
):
    config = ExperimentConfig()
    evaluation = config.evaluation.model_copy(update={"before": asked, "after": asked})
    values = config.model_copy(update={"evaluation": evaluation}).model_dump(mode="json")
    experiment = make_experiment(team=team, status=status, config=values)
    page = page_text(client.get(f"/experiments/{experiment.pk}/"))
    assert re.findall(r"Not (?:evaluated yet|reached|requested)|Measured at the end", page) == said


@pytest.mark.parametrize("number", [1000, 1001, 1002, 2500, 5000])
def test_long_series_are_thinned_to_points_of_theirs_that_keep_every_peak(number: int):
    points = [(step, step % 7 / 7) for step in range(number)]
    points[number // 3] = (number // 3, 48.0)
    points[number // 2] = (number // 2, -3.0)
    line = thinned({"x": [step for step, _ in points], "y": [value for _, value in points]})
    shown = list(zip(line["x"], line["y"], strict=True))
    assert len(shown) <= MAX_POINTS
    assert set(shown) <= set(points)
    assert shown == sorted(shown), "each step once, in order"
    assert (shown[0], shown[-1]) == (points[0], points[-1])
    assert {points[number // 3], points[number // 2]} <= set(shown)


def test_two_whole_series_are_had_by_name(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    for name in ("loss/total", "loss/entropy", "other"):
        MetricPoint.objects.create(experiment=experiment, name=name, step=3, value=0.5)
    url = f"/experiments/{experiment.pk}/metrics/"
    answer = client.get(f"{url}?name=other&name=loss/total").json()
    assert answer == {"series": {name: {"x": [3], "y": [0.5]} for name in ("other", "loss/total")}}
    assert client.get(f"{url}?name=a&name=b&name=c").status_code == 400


def test_charts_are_told_what_happened_at_which_step(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    now = timezone.now()
    for step, minutes in ((300, 90), (5, 10)):
        row = experiment.checkpoints.create(step=step, policy_version=step, path=f"/none/{step}")
        experiment.checkpoints.filter(pk=row.pk).update(created_at=now - timedelta(minutes=minutes))
    Stage.objects.create(experiment=experiment, name="grpo", position=1, started_at=now - timedelta(hours=1))
    experiment.attempts.create(number=2, worker_name="gpu", resumed_step=5)
    MetricPoint.objects.create(experiment=experiment, name="checkpoint/rolled_back", step=7, value=1)
    entry = make_replay_entry(team=team)
    for _ in range(2):
        group = make_group(experiment=experiment)
        entry.uses.create(
            experiment=experiment, group=group, step=6, advantage=1.0, replaced=entry.trajectory
        )
    answer = client.get(f"/experiments/{experiment.pk}/metrics/").json()
    markers = sorted((one["kind"], one["stage"], one["step"], one["text"]) for one in answer["markers"])
    assert markers == [
        ("checkpoint", "grpo", 5, "Checkpoint"),
        ("checkpoint", "sft", 300, "Checkpoint"),
        ("injection", "grpo", 6, "2 replay entries injected"),
        ("resume", "grpo", 5, "Attempt 2 resumed here"),
        ("rollback", "grpo", 7, "Rolled back; learning rate x 0.5"),
    ]
    later = client.get(f"/experiments/{experiment.pk}/metrics/", {"from_step": "7"}).json()
    assert {one["kind"] for one in later["markers"]} == {"checkpoint", "rollback"}


def test_groups_are_filtered_by_a_range_of_steps(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    for step in (4, 5, 8, 9):
        make_trajectory(group=make_group(experiment=experiment, step=step))
    page = page_text(client.get(f"/experiments/{experiment.pk}/?tab=groups&purpose=train&step=5-8"))
    assert [step for step in (4, 5, 8, 9) if f"Step {step}<" in page] == [5, 8]


def test_the_log_is_read_from_its_end_and_from_its_first_error(client: Client, operator, team: Team):
    experiment = make_experiment(team=team)
    folder = settings.EXPERIMENTS_DIR / str(experiment.pk) / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"INFO line {number}" for number in range(100)]
    lines[60] = "RuntimeError: broken"
    (folder / "trainer-1.log").write_text("\n".join(lines) + "\nhalf a li")
    url = f"/experiments/{experiment.pk}/log/"

    tail = client.get(url, {"file": "trainer-1.log"}).json()
    assert tail["lines"][-1][1:] == ["info", "INFO line 99"]
    more = client.get(url, {"file": "trainer-1.log", "after": tail["end"]}).json()
    assert more["lines"] == []
    error = client.get(url, {"file": "trainer-1.log", "at": "first-error"}).json()
    assert ["error", "RuntimeError: broken"] in [line[1:] for line in error["lines"][:25]]
    assert client.get(url, {"file": "../config.yaml"}).status_code == 404
    (folder / "trainer-1.log.1").write_text("INFO before\n")
    before = client.get(url, {"file": "trainer-1.log.1"}).json()
    assert before["lines"][-1][1:] == ["info", "INFO before"]
    page = page_text(client.get(f"/experiments/{experiment.pk}/", {"tab": "log"}))
    assert page.index('value="trainer-1.log"') < page.index('value="trainer-1.log.1"')


def slow_first_error(lines: list[str]) -> int | None:
    """What `first_error` shall answer: every line looked at."""
    found = next((place for place, line in enumerate(lines) if level_of(line) == "error"), None)
    return (
        None if found is None else len("".join(f"{line}\n" for line in lines[: max(0, found - 20)]).encode())
    )


@pytest.mark.parametrize(
    "error", ["RuntimeError: broken", "2026 ERROR x", "Traceback (most recent call last):", ""]
)
@pytest.mark.parametrize("block", [7, 64, 1 << 20])
def test_the_first_error_is_found_across_blocks(tmp_path: Path, monkeypatch, error: str, block: int):
    monkeypatch.setattr(log_files, "SEARCH_BYTES", block)
    lines = (
        [f"INFO no Error: ä {number}" for number in range(40)] + [error] + ["CRITICAL later"] * bool(error)
    )
    path = tmp_path / "trainer-1.log"
    path.write_text("\n".join(lines) + "\n")
    found = first_error(path)
    assert found.start == slow_first_error(lines)
    assert found.is_whole == (not error)


def test_a_search_that_takes_long_says_how_far_it_came_and_goes_on_from_there(
    client: Client, operator, team: Team, monkeypatch
):
    monkeypatch.setattr(log_files, "SEARCH_S", 0.0)
    monkeypatch.setattr(log_files, "SEARCH_BYTES", 4096)
    experiment = make_experiment(team=team)
    folder = log_files.log_folder(experiment.pk)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"INFO line {number}" for number in range(2000)] + ["RuntimeError: broken", "INFO the end"]
    (folder / "trainer-1.log").write_text("\n".join(lines))
    asked, query = 0, {"file": "trainer-1.log", "at": "first-error"}
    while not (answer := client.get(f"/experiments/{experiment.pk}/log/", query).json())["found"]:
        assert answer["searched"] > query.get("after", 0)
        query["after"], asked = answer["searched"], asked + 1
    assert asked > 3
    assert ["error", "RuntimeError: broken"] in [line[1:] for line in answer["lines"]]


@pytest.mark.parametrize(
    "line", ["", "INFO a", "INFO ä 界 \x1b[32mgreen\x1b[0m", 'INFO "quoted"\t' + "x" * 300]
)
@pytest.mark.parametrize("number", [10, 20_000])
def test_a_chunk_of_a_log_is_small_whatever_its_lines_are(
    client: Client, operator, team: Team, line: str, number: int
):
    experiment = make_experiment(team=team)
    folder = log_files.log_folder(experiment.pk)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "trainer-1.log"
    log.write_text("".join(f"{line}{place}\n" for place in range(number)))
    url, seen, after = f"/experiments/{experiment.pk}/log/", 0, 0
    tail = client.get(url, {"file": log.name})
    assert tail.json()["lines"][-1][2].endswith(str(number - 1))
    assert tail.json()["end"] == log.stat().st_size
    while after < log.stat().st_size:
        answer = client.get(url, {"file": log.name, "after": after})
        assert max(len(answer.content), len(tail.content)) <= 100 * 1024
        chunk = answer.json()
        assert chunk["start"] == after
        seen, after = seen + len(chunk["lines"]), chunk["end"]
    assert seen == number


def test_the_tabs_count_what_they_hold(client: Client, operator, team: Team):
    experiment, other = make_experiment(team=team), make_experiment(team=team)
    for step in (1, 2, 3):
        checkpoint = experiment.checkpoints.create(step=step, policy_version=step, path=f"/none/{step}")
        experiment.attempts.create(number=step, worker_name="gpu")
    for name in ("before", "after"):
        make_evaluation(experiment, name=name)
    Evaluation.objects.filter(pk=make_evaluation(other).pk).update(checkpoint=checkpoint)
    found = [
        Experiment.objects.annotate(**read_with_experiment(one.pk)).get(pk=one.pk)
        for one in (experiment, other)
    ]
    assert tab_counts(found[0]) == {"evaluations": 3, "checkpoints": 3, "attempts": 3}
    assert tab_counts(found[1]) == {"evaluations": 1}


def test_the_fleet_page_shows_workers_desktops_and_hides_foreign_work(client: Client, operator, team: Team):
    worker = Worker.objects.create(
        name="env@one", queue="env", host="h", pid=1, slots=4, heartbeat_at=timezone.now()
    )
    values = {"host": "h", "provider": "x11", "width": 512, "height": 384, "worker": worker}
    mine = Desktop.objects.create(name="desk-mine", phase="leased", **values)
    theirs = Desktop.objects.create(name="desk-theirs", phase="leased", **values)
    ours = make_trajectory(team=team, desktop=mine, status="running")
    foreign = make_trajectory(desktop=theirs, status="running")
    page = page_text(client.get("/fleet/"))
    assert "env@one" in page
    assert ours.task.instruction in page
    assert foreign.task.instruction not in page
    assert "Another team" in page


def test_a_control_run_says_so_beside_its_name(client: Client, operator, team: Team) -> None:
    plain = make_experiment(team=team, owner=operator)
    control = make_experiment(team=team, owner=operator)
    control.config["algorithm"]["reward_control"] = "shuffled"
    control.save()
    assert "Control: shuffled rewards" in page_text(client.get(f"/experiments/{control.pk}/"))
    assert "Control:" not in page_text(client.get(f"/experiments/{plain.pk}/"))


def test_steps_that_left_the_weights_as_they_were_are_no_optimiser_steps(
    client: Client, operator, team: Team
):
    experiment = make_experiment(team=team, status="finished", step=6, policy_version=1)
    page = page_text(client.get(f"/experiments/{experiment.pk}/"))
    assert '<span class="stat-value">1 <small>/ 20</small></span>' in page
    assert "5 of 6 steps left the weights as they were" in page
