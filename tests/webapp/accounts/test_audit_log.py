"""The audit log: what leaves a row, who may read which, and that no role changes one."""

import csv
import io
import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_replay_entry, make_team, make_trajectory, make_user
from testing.fleet_rows import make_desktop, make_worker
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import AuditAction, AuditEntry, Role, Scope
from webapp.accounts.services.audit_log import log_action, log_viewing, prune_audit_log
from webapp.accounts.services.members import add_member
from webapp.accounts.services.tokens import create_token
from webapp.experiments.services.experiments import request_cancel
from webapp.experiments.sweep_plan import SweepPlan
from webapp.fleet.models import DesktopPhase
from webapp.replay.models import ReplayEntry
from webapp.replay.services.bulk_labels import label_many
from webapp.screens.models import Screen
from webapp.screens.services.controls import hand_back_control, request_control
from webapp.sweeps.search_space import parse_axes
from webapp.sweeps.services.sweeps import launch_sweep
from webapp.trajectories.models import Trajectory

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough password"


def rows(**wanted):
    """(person, action, kind, object) of each entry, oldest first."""
    found = AuditEntry.objects.filter(**wanted).order_by("id")
    return [(row.person_name, row.action, row.kind, row.object_id) for row in found]


def detail():
    return AuditEntry.objects.latest("id").detail


@pytest.fixture
def admin(client):
    user = make_user("admin", name="ada")
    client.force_login(user)
    AuditEntry.objects.all().delete()
    return user


def test_sign_ins_are_recorded_also_failed_ones(client):
    user = make_user("viewer", name="vera")
    user.set_password(PASSWORD)
    user.save()
    client.post("/login/", {"username": "vera", "password": "wrong"})
    client.post("/login/", {"username": PASSWORD, "password": "typed into the wrong field"})
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    client.post("/logout/")
    assert rows() == [
        ("vera", "sign_in_failed", "person", "vera"),
        ("unknown", "sign_in_failed", "person", ""),
        ("vera", "signed_in", "person", "vera"),
        ("vera", "signed_out", "person", "vera"),
    ]
    assert detail() == {"address": "127.0.0.1"}
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


def test_changes_of_members_passwords_and_tokens_are_recorded(client, admin):
    client.post("/team/members/", {"username": "bob", "role": "viewer"})
    made = User.objects.get(username="bob").memberships.get()
    client.post(f"/team/members/{made.pk}/role/", {"role": "operator"})
    assert detail() == {"before": "viewer", "after": "operator"}
    client.post(f"/team/members/{made.pk}/password/")
    client.post(f"/team/members/{made.pk}/remove/")
    client.post("/profile/tokens/", {"name": "script", "scope": "read", "days": "7"})
    client.post(f"/profile/tokens/{admin.api_tokens.get().pk}/revoke/")
    assert rows(person=admin) == [
        ("ada", "member_added", "person", "bob"),
        ("ada", "role_changed", "person", "bob"),
        ("ada", "password_changed", "person", "bob"),
        ("ada", "member_removed", "person", "bob"),
        ("ada", "token_created", "token", "script"),
        ("ada", "token_revoked", "token", "script"),
    ]
    assert set(AuditEntry.objects.values_list("team", flat=True)) == {admin.memberships.get().team_id}


def test_experiments_are_recorded_from_page_api_and_command_line(client, admin):
    team = admin.memberships.get().team
    made = client.post("/api/v1/experiments", {"name": "x"}, content_type="application/json").json()["id"]
    client.post(f"/experiments/{made}/pause/")
    client.post(f"/experiments/{made}/resume/")
    client.post(f"/experiments/{made}/priority/", {"priority": "3"})
    client.post("/experiments/cancel/", {"id": [made]})
    client.post("/experiments/cancel/undo/")
    call_command("experiment", str(made), "cancel", stdout=io.StringIO())
    actions = ["launched", "paused", "resumed", "reordered", "cancelled", "cancel_undone"]
    expected = [("ada", action, "experiment", str(made)) for action in actions]
    assert rows(team=team) == [*expected, ("command line", "cancelled", "experiment", str(made))]


def test_a_sweep_is_one_row_of_its_own_and_not_one_per_arm(client, admin):
    config = ExperimentConfig()
    axes = parse_axes("optimiser.learning_rate = 1e-6, 3e-6, 1e-5", config)
    plan = SweepPlan(axes=axes, num_seeds=2, metric="rollout/success")
    team = admin.memberships.get().team
    sweep = launch_sweep(team=team, owner=admin, name="rates", config=config, plan=plan)
    assert sweep.arms.count() > 0
    assert rows() == [("ada", "launched", "sweep", str(sweep.pk))]
    assert detail() == {"name": "rates", "preset": "", "experiments": 6}
    assert f"/sweeps/{sweep.pk}/" in client.get("/audit/").content.decode()
    client.post(f"/sweeps/{sweep.pk}/pause/")
    client.post(f"/sweeps/{sweep.pk}/resume/")
    client.post(f"/sweeps/{sweep.pk}/cancel/")
    assert [action for _, action, kind, _ in rows() if kind == "sweep"] == [
        *("launched", "paused", "resumed", "cancelled")
    ]


def test_changes_of_rules_and_prices_are_recorded_with_what_was_before(client, admin):
    team = admin.memberships.get().team
    client.post("/storage/rules/", {"max_age_days": "30"})
    assert detail() == {"before": None, "after": {"max_age_days": 30, "max_bytes": None}}
    client.post("/storage/rules/", {"max_age_days": "7", "max_gb": "1.5"})
    assert detail()["before"] == {"max_age_days": 30, "max_bytes": None}
    client.post("/storage/rules/", {"max_age_days": "7", "max_gb": "1.5"})  # nothing changes
    client.post(f"/storage/rules/{team.retention_rules.get().pk}/delete/")
    assert detail() == {"before": {"max_age_days": 7, "max_bytes": 1_500_000_000}}
    client.post("/experiments/prices/", {"currency": "EUR", "gpu_hour": "2.5"})
    assert detail() == {
        "before": {"gpu_hour": 0, "currency": "USD"},
        "after": {"gpu_hour": 2.5, "currency": "EUR"},
    }
    client.post("/experiments/prices/", {"currency": "EUR", "gpu_hour": "2.5"})
    kept = ("ada", "rule_changed", "team", str(team.pk))
    assert rows(team=team) == [
        kept,
        kept,
        ("ada", "rule_deleted", "team", str(team.pk)),
        ("ada", "prices_changed", "team", str(team.pk)),
    ]


def test_what_is_refused_leaves_no_row(client, admin):
    ended = make_experiment(team=admin.memberships.get().team, status="finished")
    client.post(f"/experiments/{ended.pk}/pause/")
    client.post("/api/v1/experiments", {"name": "x", "preset": "none"}, content_type="application/json")
    only = admin.memberships.get()
    client.post(f"/team/members/{only.pk}/role/", {"role": "viewer"})
    assert rows() == []


def test_a_bulk_label_is_one_row_and_so_is_its_undo(client, admin):
    team = admin.memberships.get().team
    entries = [make_replay_entry(team=team) for _ in range(3)]
    label_many(entries=ReplayEntry.objects.filter(team=team), user=admin, verdict="gold")
    assert rows() == [("ada", "labelled", "entry", str(entries[0].pk))]
    assert detail() == {"after": "gold", "entries": 3}
    client.post("/replay/undo/")
    assert detail() == {"entries": 3}
    client.post(f"/replay/{entries[1].pk}/label/", {"verdict": "rejected"})
    assert detail() == {"before": "inbox", "after": "rejected"}
    assert "\n" in read(client.get("/replay/export/?verdict=rejected"))
    assert rows()[-1][1] == "exported"
    assert len(rows()) == 4


def test_fleet_operations_and_secret_grants_are_recorded(client, admin, settings, tmp_path):
    settings.SECRETS_DIR = tmp_path
    desktop, worker = make_desktop(), make_worker()
    client.post(f"/fleet/desktops/{desktop.name}/quarantine/", {"reason": "it blinks"})
    assert detail() == {"verb": "quarantine", "host": desktop.host, "reason": "it blinks"}
    client.post(f"/fleet/workers/{worker.pk}/drain/", {"on": "1"})
    call_command("grant_secret", "prize", admin.memberships.get().team.name, verbosity=0)
    assert rows() == [
        ("ada", "operated", "desktop", desktop.name),
        ("ada", "operated", "worker", worker.name),
        ("command line", "secret_granted", "secret", "prize"),
    ]


def test_the_admin_site_is_recorded_when_it_changed_something(client):
    client.force_login(User.objects.create_superuser("root"))
    AuditEntry.objects.all().delete()
    client.get("/admin/auth/user/")
    client.post("/admin/accounts/team/add/", {"name": ""})
    assert rows() == []
    formset = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    client.post("/admin/accounts/team/add/", {"name": "new team", **formset})
    assert rows() == [("root", "administered", "admin", "/admin/accounts/team/add/")]
    client.force_login(make_user("admin"))
    AuditEntry.objects.all().delete()
    client.post("/admin/accounts/team/add/", {"name": "not allowed", **formset})
    assert rows() == []


def test_watching_is_one_row_per_session_and_page(client, admin):
    trajectory = make_trajectory(team=admin.memberships.get().team, status="running", reward=None)
    for _ in range(3):
        client.get(f"/trajectories/{trajectory.pk}/")
    assert rows() == [("ada", "watched", "trajectory", str(trajectory.pk))]
    client.get(f"/groups/{trajectory.group_id}/")
    assert rows()[1:] == [("ada", "watched", "group", str(trajectory.group_id))]
    long_ago = timezone.now() - timedelta(minutes=16)
    AuditEntry.objects.update(at=long_ago)
    client.get(f"/trajectories/{trajectory.pk}/")
    assert len(rows()) == 3


def test_the_fleets_screens_are_watched_too(client, admin):
    running = make_trajectory(team=admin.memberships.get().team, status="running", reward=None)
    desktop = make_desktop(phase=DesktopPhase.LEASED)
    client.get("/fleet/")
    assert rows() == [], "nothing of ours runs there"
    Trajectory.objects.filter(pk=running.pk).update(desktop=desktop)
    client.get("/fleet/")
    client.get(f"/fleet/desktops/{desktop.name}/")
    assert rows() == [("ada", "watched", "fleet", ""), ("ada", "watched", "desktop", desktop.name)]


def test_what_has_ended_is_watched_without_a_row(client, admin):
    entry = make_replay_entry(team=admin.memberships.get().team)
    client.get(f"/trajectories/{entry.trajectory_id}/")
    assert rows() == []


def test_taking_control_and_giving_it_back_are_recorded(admin):
    trajectory = make_trajectory(team=admin.memberships.get().team, status="running", reward=None)
    Screen.objects.create(trajectory=trajectory, addresses=["unix:/nowhere"])
    control = request_control(trajectory=trajectory, user=admin)
    request_control(trajectory=trajectory, user=admin)
    hand_back_control(control=control)
    object_id = str(trajectory.pk)
    assert rows() == [
        ("ada", "took_control", "trajectory", object_id),
        ("ada", "ended_control", "trajectory", object_id),
    ]
    assert detail() == {"how": "handed_back"}


# --- who reads ---------------------------------------------------------------------------------------


def test_admins_read_their_team_and_superusers_everything(client):
    ours, theirs = make_team(), make_team()
    admin = make_user("admin", team=ours)
    log_action(AuditAction.LAUNCHED, person=admin, team=ours, kind="experiment", object_id=1, name="ours")
    log_action(AuditAction.LAUNCHED, person=None, team=theirs, kind="experiment", object_id=2, name="theirs")
    client.force_login(admin)
    page = client.get("/audit/").content.decode()
    assert "name: ours" in page
    assert "name: theirs" not in page
    listed = client.get("/api/v1/audit?object=experiment").json()["items"]
    assert [(row["object_id"], row["team"]) for row in listed] == [("1", ours.name)]
    client.force_login(User.objects.create_superuser("root"))
    assert "name: theirs" in client.get("/audit/").content.decode()
    assert len(client.get("/api/v1/audit?object=experiment").json()["items"]) == 2


def test_adding_an_account_to_a_team_does_not_show_its_sign_ins():
    user = make_user("viewer", name="vera")
    snoop = make_user("admin", name="snoop")
    Client().force_login(user)
    add_member(team=snoop.memberships.get().team, username="vera", role=Role.VIEWER, by=snoop)
    Client().force_login(user)
    reader = Client()
    reader.force_login(snoop)
    seen = {(row["person"], row["action"]) for row in reader.get("/api/v1/audit").json()["items"]}
    assert ("snoop", "member_added") in seen
    assert ("vera", "signed_in") not in seen


@pytest.mark.parametrize(("scope", "status"), [(Scope.READ, 403), (Scope.OPERATE, 403), (Scope.ADMIN, 200)])
@pytest.mark.parametrize("is_superuser", [False, True])
def test_a_token_reads_the_log_with_the_scope_of_an_admin_only(client, scope, status, is_superuser):
    user = User.objects.create_superuser("root") if is_superuser else make_user("admin")
    secret = create_token(user=user, name="x", scope=scope)
    answer = client.get("/api/v1/audit", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == status


def test_no_route_changes_or_deletes_a_row(client, admin):
    log_action(AuditAction.LAUNCHED, person=admin, team=admin.memberships.get().team)
    for path in ("/audit/", "/audit/export/", "/api/v1/audit"):
        for method in (client.post, client.put, client.patch, client.delete):
            assert method(path).status_code in (405, 415)
    client.force_login(User.objects.create_superuser("root"))
    assert "audit" not in client.get("/admin/").content.decode().lower()


def test_a_row_outlives_the_account_and_the_team():
    user = make_user("admin", name="gone")
    log_action(AuditAction.LAUNCHED, person=user, team=user.memberships.get().team, object_id=7)
    user.memberships.get().team.delete()
    user.delete()
    row = AuditEntry.objects.latest("id")
    assert (row.person_name, row.person, row.team, row.object_id) == ("gone", None, None, "7")


# --- filters, pages, files ---------------------------------------------------------------------------


def test_the_log_is_filtered_by_person_action_object_and_time(client, admin):
    team = admin.memberships.get().team
    old = make_experiment(team=team)
    for number in range(50):
        log_action(AuditAction.PAUSED, person="pat", team=team, kind="experiment", object_id=number)
    request_cancel(experiment=old, user=admin)
    AuditEntry.objects.filter(person_name="pat", object_id="7").update(at=timezone.now() - timedelta(days=3))
    today = timezone.now().date()
    for query, number in {
        "": 51,
        "person=pat": 50,
        "action=cancelled": 1,
        "object=experiment": 51,
        f"object=experiment+{old.pk}&action=cancelled": 1,
        f"since={today}&person=pat": 49,
        f"until={today - timedelta(days=1)}": 1,
        f"since={today - timedelta(days=4)}T00:00&until={today}": 51,
    }.items():
        found, after = [], ""
        while after is not None:
            page = client.get(f"/api/v1/audit?{query}&limit=20&after={after}").json()
            found += [row["id"] for row in page["items"]]
            after = page["next"]
        assert len(found) == len(set(found)) == number, query
        assert found == sorted(found, reverse=True)
    assert 'rel="next"' in client.get("/audit/").content.decode()


@pytest.mark.parametrize(
    "query", ["since=2026-02-31", "until=soon", "action=x", "person=%00", "since=9999-12-31T99"]
)
def test_a_filter_that_cannot_be_read_is_named(client, admin, query):
    for path in ("/api/v1/audit", "/audit/", "/audit/export/"):
        answer = client.get(f"{path}?{query}")
        assert answer.status_code in (400, 422)
        assert query.partition("=")[0] in answer.content.decode()


def test_exports_hold_what_the_filter_holds_and_run_nothing_in_a_spreadsheet(client, admin):
    team = admin.memberships.get().team
    log_action(AuditAction.PAUSED, person="=HYPERLINK(1)", team=team, kind="desktop", object_id="é,1")
    log_action(AuditAction.RESUMED, person="pat", team=team)
    lines = read(client.get("/audit/export/?format=jsonl&action=paused")).splitlines()
    assert [json.loads(line)["person"] for line in lines] == ["=HYPERLINK(1)"]
    table = list(csv.DictReader(io.StringIO(read(client.get("/audit/export/?action=paused")))))
    assert [(row["person"], row["object"]) for row in table] == [("'=HYPERLINK(1)", "desktop é,1")]
    assert rows(action="exported") == [("ada", "exported", "audit", "log")] * 2


def read(response):
    async def joined():
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(joined)().decode()


def test_old_rows_are_pruned_after_the_days_that_the_settings_name(settings):
    log_action(AuditAction.PAUSED, person="old")
    AuditEntry.objects.update(at=timezone.now() - timedelta(days=31))
    log_action(AuditAction.PAUSED, person="new")
    settings.AUDIT_DAYS = 0
    assert prune_audit_log() == 0
    settings.AUDIT_DAYS = 30
    assert prune_audit_log() == 1
    assert [row[0] for row in rows()] == ["new"]


def test_sessions_of_two_people_are_apart():
    one, two, team = make_user("viewer"), make_user("viewer"), make_team()
    for person in (one, two, one):
        log_viewing(person=person, team=team, kind="trajectory", object_id=1, how="viewer")
    log_viewing(person=one, team=team, kind="trajectory", object_id=1, how="screen")
    assert AuditEntry.objects.filter(action="watched").count() == 3
