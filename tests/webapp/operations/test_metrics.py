"""/metrics: the figures against the rows, who may read them, and the dashboard's queries against both."""

import json
import re

import pytest
import yaml
from django.db import connection
from prometheus_client.parser import text_string_to_metric_families

from testing.factories import make_team, make_user
from testing.paths import REPOSITORY
from webapp.accounts.models import Scope
from webapp.accounts.services.tokens import create_token

DASHBOARD = REPOSITORY / "deploy" / "grafana" / "deskhand.json"
AUTOSCALING = REPOSITORY / "deploy" / "kubernetes" / "autoscaling"
ELSEWHERE = {"REMOTE_ADDR": "192.0.2.7"}


def samples(client):
    """(name, labels) -> figure, as Prometheus reads them."""
    text = client.get("/metrics").content.decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_figures_are_those_of_the_rows(client, running):
    found = samples(client)
    number = ("experiment", str(running.pk))
    expected = {
        ("deskhand_experiments", ("status", "running")): 1,
        ("deskhand_experiments", ("status", "queued")): 0,
        ("deskhand_trajectories", ("phase", "waiting")): 1,
        ("deskhand_trajectories", ("phase", "sent")): 1,
        ("deskhand_trajectories", ("phase", "running")): 1,
        ("deskhand_trajectories", ("phase", "resetting")): 0,
        ("deskhand_trajectories_ended_5m", ("status", "terminated")): 1,
        ("deskhand_trajectory_errors_5m", ("kind", "policy_server")): 1,
        ("deskhand_turns_per_second",): 4 / 60,
        ("deskhand_alarms", ("name", "no_success"), ("severity", "warning")): 1,
        ("deskhand_workers", ("queue", "env"), ("status", "online")): 1,
        ("deskhand_workers", ("queue", "env"), ("status", "draining")): 1,
        ("deskhand_env_slots",): 4,
        ("deskhand_desktops", ("phase", "leased"), ("provider", "x11")): 1,
        ("deskhand_desktop_resets_total", ("host", "h1")): 40,
        ("deskhand_desktop_reset_seconds", ("host", "h1"), ("quantile", "0.99")): 0.4,
        ("deskhand_host_cpu_ratio", ("host", "h1")): 0.5,
        ("deskhand_desktops_in_use_ratio_1h",): 0.75,
        ("deskhand_experiment_step", number): 3,
        ("deskhand_experiment_step_seconds", number): 12.5,
        ("deskhand_gpu_utilisation_ratio", number, ("gpu", "0")): 0.75,
        ("deskhand_gpus", ("state", "held")): 1,
        ("deskhand_gpus", ("state", "free")): 1,
        ("deskhand_queue_jobs", ("queue", "env")): 0,
        ("deskhand_redis_up",): 1,
        ("deskhand_dispatcher_tick_seconds",): 0.2,
    }
    assert {key: found.get(key) for key in expected} == pytest.approx(expected)
    assert found["deskhand_gpus_in_use_ratio_1h",] == pytest.approx(
        0.25, abs=0.01
    )  # one of two, half the hour
    if connection.vendor == "postgresql":
        assert found["deskhand_database_connections", ("state", "active")] >= 1
        assert found["deskhand_database_max_connections",] > 1


def test_jobs_in_redis_are_counted(client, running, redis_client):
    redis_client.rpush("env", "a", "b")
    redis_client.rpush("env@h1", "c")
    found = samples(client)
    assert found["deskhand_queue_jobs", ("queue", "env")] == 2
    assert found["deskhand_queue_jobs", ("queue", "env@h1")] == 1


def test_without_redis_the_other_figures_are_there(client, running, settings):
    from webapp.operations import redis_state

    settings.REDIS_URL = "redis://127.0.0.1:9"
    redis_state._client.cache_clear()
    try:
        found = samples(client)
        assert client.get("/readyz").json()["redis"] == "does not answer"
    finally:
        redis_state._client.cache_clear()
    assert found["deskhand_redis_up",] == 0
    assert found["deskhand_env_slots",] == 4


def test_a_scrape_asks_few_queries(client, running, django_assert_max_num_queries):
    with django_assert_max_num_queries(22):
        client.get("/metrics")


# --- who may read --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_this_machine_reads_without_a_token_and_others_do_not(client):
    assert client.get("/metrics").status_code == 200
    refused = client.get("/metrics", **ELSEWHERE)
    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["forwarded", "x-forwarded-for", "x-real-ip", "via"])
def test_what_comes_through_a_proxy_of_this_machine_needs_a_token(client, header):
    assert client.get("/metrics", headers={header: "192.0.2.7"}).status_code == 401


@pytest.mark.django_db
def test_behind_a_declared_proxy_a_token_is_needed(client, settings):
    settings.BEHIND_HTTPS = True
    assert client.get("/metrics").status_code == 401


@pytest.mark.django_db
def test_a_token_of_the_fleets_team_reads_and_one_of_another_team_does_not(client):
    ours, others = make_team(), make_team()
    answers = []
    for team in (ours, others):
        secret = create_token(user=make_user("viewer", team=team), name="prometheus", scope=Scope.READ)
        headers = {"authorization": f"Bearer {secret}"}
        answers.append(client.get("/metrics", headers=headers, **ELSEWHERE).status_code)
    assert answers == [200, 401]
    wrong = {"authorization": "Bearer dh_wrong"}
    assert client.get("/metrics", headers=wrong).status_code == 401, "a wrong token is told, also from here"


# --- the dashboard -------------------------------------------------------------------------------------

SELECTOR = re.compile(r"(deskhand_\w+)\{([^}]*)\}")
BY = re.compile(r"by \(([^)]*)\)")
OF_PROMETHEUS = {"job", "instance"}
"""Labels that a scrape adds."""


def queries():
    """(title, query, legend) of the dashboard, and of what makes env hosts more and fewer."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    scaler = yaml.safe_load((AUTOSCALING / "keda.yaml").read_text())
    triggers = [one["metadata"]["query"] for one in scaler["spec"]["triggers"]]
    return [("keda.yaml", query, "") for query in triggers] + [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in panels
        for target in panel.get("targets", [])
    ]


def test_the_example_without_keda_names_the_same_figures():
    scaler = yaml.safe_load((AUTOSCALING / "hpa.yaml").read_text())
    named = {one["external"]["metric"]["name"] for one in scaler["spec"]["metrics"]}
    assert named == {SELECTOR.findall(query)[0][0] for title, query, _ in queries() if title == "keda.yaml"}


def test_every_query_of_the_dashboard_asks_for_figures_and_labels_that_exist(client, running):
    labels = {}
    for name, *pairs in samples(client):
        labels.setdefault(name, set()).update(key for key, _ in pairs)
    if connection.vendor != "postgresql":
        labels |= {"deskhand_database_connections": {"state"}, "deskhand_database_max_connections": set()}
    asked = set()
    for title, query, legend in queries():
        found = SELECTOR.findall(query)
        assert found, title
        known = OF_PROMETHEUS.union(*(labels.get(name, set()) for name, _ in found))
        for name, matchers in found:
            asked.add(name)
            assert name in labels, f"{title}: {name} is not there"
            assert set(re.findall(r"(\w+)\s*[=!]~?", matchers)) <= labels[name] | OF_PROMETHEUS, title
        grouped = {one.strip() for group in BY.findall(query) for one in group.split(",")}
        assert grouped <= known, title
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (grouped or known), title
    of_process = {name for name in labels if name.startswith("deskhand_web_process_")}
    assert labels.keys() - of_process - asked == set(), "figures that no panel shows"


def test_the_values_of_labels_that_the_dashboard_names_exist(client, running):
    found = {(name, label) for name, *labels in samples(client) for label in labels}
    for title, query, _ in queries():
        for name, matchers in SELECTOR.findall(query):
            for key, _, values in re.findall(r"(\w+)(!?=~?|!~)'([^']*)'", matchers):
                assert {(name, (key, value)) for value in values.split("|")} <= found, title
