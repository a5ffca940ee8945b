"""Every route against every role of the team that owns the row, another team's admin, and anonymous.

The routes are read from the URL table: one without a row here fails the test, so access is thought about when
a route is added. What changed something for others must have left a row in the audit log.
"""

from dataclasses import dataclass, replace

import pytest
from django.contrib import messages
from django.contrib.messages import get_messages
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver

from testing.web_world import World, all_routes
from webapp.accounts.models import AuditEntry, Role

pytestmark = pytest.mark.django_db

MEMBERS = {
    "owner": Role.ADMIN,
    "operator": Role.OPERATOR,
    "annotator": Role.ANNOTATOR,
    "teammate": Role.VIEWER,
}
PEOPLE = (*MEMBERS, "stranger", "anonymous")
LOGIN = "login"
"""Redirect to the sign-in page."""


@dataclass(frozen=True)
class Row:
    """What each person gets: a status code, or LOGIN."""

    method: str
    path: str
    owner: int | str
    teammate: int | str
    stranger: int | str
    anonymous: int | str = LOGIN
    body: str = ""
    content_type: str = "application/x-www-form-urlencoded"
    needs: Role = Role.OPERATOR
    """Members from this role on get what the owner gets, the others what the teammate gets."""

    def expected(self, person: str) -> int | str:
        if person not in MEMBERS:
            return getattr(self, person)
        return self.owner if MEMBERS[person].includes(self.needs) else self.teammate


def page(path: str, stranger: int = 200) -> Row:
    """Any member may look; a stranger sees their own team's page, or 404 for a thing of another's."""
    return Row("get", path, 200, 200, stranger)


def thing(path: str) -> Row:
    return page(path, stranger=404)


def act(path: str, owner: int = 302, *, stranger: int = 404, body: str = "") -> Row:
    """A change that a viewer may not make."""
    return Row("post", path, owner, 403, stranger, body=body)


def api_read(path: str, stranger: int = 200) -> Row:
    return Row("get", path, 200, 200, stranger, 401)


def api_act(path: str, owner: int, *, stranger: int = 404, body: str = "{}", method: str = "post") -> Row:
    return Row(method, path, owner, 403, stranger, 401, body, "application/json")


def by(role: Role, row: Row) -> Row:
    """The row, for members from another role on."""
    return replace(row, needs=role)


NO_TOKEN = '{"token": "x", "roles": ["env"], "name": "far", "version": "x"}'
LABEL = '{"verdict": "gold"}'
REWARD = "slice=buffer-all&term=task_score.v1&weight=1&partial=1&expression=&count=mean&term_low=&term_high="
NEW = '{"name": "x"}'
TABLE_SHOWN = '{"title": "x", "head": ["a"], "rows": [["1"]]}'
SEEDS = '{"name": "x", "plan": {"num_seeds": 2}}'
REPORT = '{"title": "x", "experiments": [0]}'
NOTIFY = "channel=browser&kinds=failed&stalled_minutes=30&inbox_hours=24"
RULE = "min_score=1&keep=3&audit=5&limit=10"
NONE = '{"ids": [0]}'
TERMS = '"definition": {"terms": [{"term": "task_score.v1", "weight": 1}]}'
VIEW = '{"page": "replay", "name": "x"}'
TABLE = {  # "name" or "name METHOD", for a second row of a route
    "healthz": Row("get", "/healthz", 200, 200, 200, 200),
    "readyz": Row("get", "/readyz", 503, 503, 503, 503),  # no dispatcher runs
    "metrics": Row(
        "get", "/metrics", 200, 200, 200, 200
    ),  # asked from this machine; test_metrics has the rest
    "login": Row("get", "/login/", 302, 302, 302, 200),
    "logout": Row("post", "/logout/", 302, 302, 302),
    "home": page("/"),
    "home-needs": page("/home/needs/"),
    "find": page("/find/?q=12"),
    "frame-show": Row("get", "/frames/{frame}.jpg", 200, 200, 404, 404),
    # --- documentation: without a built site no page is there
    "help-show": Row("get", "/help/", 302, 302, 302),
    "help-search": page("/help/search/?q=reward"),
    "help-page": Row("get", "/help/docs/none/", 404, 404, 404),
    "help-file": Row("get", "/help/_images/none.png", 404, 404, 404),
    # --- account
    "profile-show": page("/profile/"),
    "password-change": page("/profile/password/"),
    "two-step-show": page("/profile/two-step/"),
    "two-step-on": Row("post", "/profile/two-step/on/", 302, 302, 302),
    "two-step-off": Row("post", "/profile/two-step/off/", 302, 302, 302),
    "sso-start": Row("get", "/login/sso/", 404, 404, 404, 404),  # not set up: it is not there
    "sso-callback": Row("get", "/login/sso/callback/", 404, 404, 404, 404),
    "token-create": Row("post", "/profile/tokens/", 302, 302, 302, body="name=x"),
    "token-revoke": Row("post", "/profile/tokens/1/revoke/", 404, 404, 404),
    "view-save": Row("post", "/views/", 302, 302, 302, body="page=replay&name=x"),
    "view-delete": by(Role.ANNOTATOR, act("/views/{view}/delete/")),
    "team-show": page("/team/"),
    "team-switch": Row("post", "/teams/{team}/switch/", 302, 302, 404),
    "member-add": by(Role.ADMIN, act("/team/members/", stranger=302, body="username=new&role=viewer")),
    "member-role": by(Role.ADMIN, act("/team/members/{member}/role/", body="role=viewer")),
    "member-remove": by(Role.ADMIN, act("/team/members/{member}/remove/")),
    "member-password": by(Role.ADMIN, act("/team/members/{member}/password/")),
    "audit-list": by(Role.ADMIN, Row("get", "/audit/", 200, 403, 200)),
    "audit-export": by(Role.ADMIN, Row("get", "/audit/export/?format=jsonl", 200, 403, 200)),
    # --- storage
    "storage-show": page("/storage/"),
    "retention-save": by(Role.ADMIN, act("/storage/rules/", stranger=302, body="max_age_days=9")),
    "retention-delete": by(Role.ADMIN, act("/storage/rules/{rule}/delete/")),
    # --- notifications
    "notification-list": page("/notifications/"),
    "notification-log": page("/notifications/log/"),
    "notification-cursor": page("/notifications/cursor/"),
    "notification-add": by(
        Role.ADMIN,
        act("/notifications/rules/", stranger=302, body=NOTIFY),
    ),
    "notification-test": by(Role.ADMIN, act("/notifications/rules/{notification_rule}/test/")),
    "notification-switch": by(
        Role.ADMIN, act("/notifications/rules/{notification_rule}/switch/", body="is_on=0")
    ),
    "notification-delete": by(Role.ADMIN, act("/notifications/rules/{notification_rule}/delete/")),
    "notification-retry": by(Role.ADMIN, act("/notifications/deliveries/{delivery}/retry/")),
    "notification-picture": Row("get", "/notifications/pictures/{picture}.jpg", 200, 200, 200, 200),
    # --- experiments
    "experiment-list": page("/experiments/"),
    "experiment-rows": page("/experiments/rows/"),
    "experiment-compare": page("/experiments/compare/"),
    "evaluation-matrix": page("/experiments/tasks/?id={experiment}"),
    "experiments-cancel": act("/experiments/cancel/", stranger=302, body="id={experiment}"),
    "experiments-cancel-undo": act("/experiments/cancel/undo/", stranger=302),
    "experiments-tag": act("/experiments/tag/", stranger=302, body="id={experiment}&tag=x"),
    "experiments-archive": act("/experiments/archive/", stranger=302, body="id={experiment}"),
    "experiments-delete": Row("get", "/experiments/delete/?id={experiment}", 200, 403, 404),
    "experiments-delete POST": act("/experiments/delete/", body="id={experiment}"),
    "experiment-launch": Row("get", "/experiments/launch/", 200, 403, 200),
    "experiment-launch POST": act("/experiments/launch/", 422, stranger=422, body="preset=first-desk"),
    "launch-preflight": act("/experiments/launch/preflight/", 200, stranger=200, body="preset=first-desk"),
    "launch-yaml": act("/experiments/launch/yaml/", 200, stranger=200, body="preset=first-desk"),
    "launch-scale": act("/experiments/launch/scale/", 200, stranger=200, body="scale_size=2B&scale_gpus=1"),
    "launch-form": act("/experiments/launch/form/", 200, stranger=200, body="preset=first-desk"),
    "prices": page("/experiments/prices/"),
    "prices POST": by(Role.ADMIN, act("/experiments/prices/", stranger=302, body="currency=USD&gpu_hour=2")),
    "queue-show": page("/queue/"),
    "queue-rows": page("/queue/rows/"),
    "sweep-detail": thing("/sweeps/{sweep}/"),
    "sweep-rows": thing("/sweeps/{sweep}/rows/"),
    "sweep-cost": thing("/sweeps/{sweep}/cost/"),
    "sweep-charts": thing("/sweeps/{sweep}/charts/"),
    "sweep-pause": act("/sweeps/{sweep}/pause/"),
    "sweep-resume": act("/sweeps/{sweep}/resume/"),
    "sweep-cancel": act("/sweeps/{sweep}/cancel/"),
    "experiment-detail": thing("/experiments/{experiment}/"),
    "experiment-yaml": thing("/experiments/{experiment}/config.yaml"),
    "experiment-part": thing("/experiments/{experiment}/parts/header/"),
    "experiment-metrics": thing("/experiments/{experiment}/metrics/"),
    "experiment-gpus": thing("/experiments/{experiment}/gpus/"),
    "experiment-log": Row("get", "/experiments/{experiment}/log/?file=none", 404, 404, 404),
    "alarm-show": Row("get", "/experiments/{experiment}/alarms/none/", 404, 404, 404),
    "alarm-acknowledge": act("/experiments/{experiment}/alarms/none/acknowledge/", 404),
    "experiment-pause": act("/experiments/{experiment}/pause/"),
    "experiment-resume": act("/experiments/{experiment}/resume/"),
    "experiment-cancel": act("/experiments/{experiment}/cancel/"),
    "experiment-edit": act("/experiments/{experiment}/edit/", body="name=x"),
    "experiment-priority": act("/experiments/{experiment}/priority/", 200, body="priority=3"),
    "experiment-move": act("/experiments/{experiment}/move/", 200),
    "checkpoint-evaluate": act("/experiments/{experiment}/checkpoints/{checkpoint}/evaluate/"),
    "checkpoint-export": act("/experiments/{experiment}/checkpoints/{checkpoint}/export/"),
    "export-remove": act("/experiments/{experiment}/exports/{export}/remove/"),
    "export-download": Row("get", "/experiments/{experiment}/exports/{export}.tar", 404, 404, 404),
    # --- fleet
    "fleet-show": page("/fleet/"),
    "fleet-parts": page("/fleet/parts/"),
    "fleet-history": page("/fleet/history/"),
    "fleet-desktop": page("/fleet/desktops/{desktop}/"),
    "fleet-desktop-part": page("/fleet/desktops/{desktop}/part/"),
    "boot-failure-screen": Row("get", "/fleet/failures/0/screen/", 404, 404, 404),
    # All teams share the fleet: operators of the first team, here the owner's, operate it.
    "desktop-operate": act("/fleet/desktops/{desktop}/kill/", stranger=403),
    "worker-drain": act("/fleet/workers/{worker}/drain/", stranger=403, body="on=1"),
    "host-add": by(Role.ADMIN, Row("get", "/fleet/hosts/add/", 200, 403, 403)),
    "host-add POST": by(Role.ADMIN, act("/fleet/hosts/add/", 200, stranger=403)),
    "host-revoke": by(Role.ADMIN, act("/fleet/hosts/{joined}/revoke/", stranger=403)),
    # --- joined hosts: a person's session opens none of it
    "host-authority": Row("get", "/hosts/authority.pem", 200, 200, 200, 200),
    "host-join": Row("post", "/hosts/join/", 403, 403, 403, 403, NO_TOKEN, "application/json"),
    "host-ask": Row("post", "/hosts/ask/claim/", 401, 401, 401, 401, "{}", "application/json"),
    "host-reports": Row("post", "/hosts/reports/", 401, 401, 401, 401, "{}", "application/json"),
    "host-drain": act("/fleet/hosts/{host}/drain/", stranger=403, body="on=1"),
    # --- trajectories
    "trajectory-list": page("/trajectories/"),
    "trajectory-detail": thing("/trajectories/{trajectory}/"),
    "trajectory-turns": thing("/trajectories/{trajectory}/turns/"),
    "turn-completion": thing("/trajectories/{trajectory}/turns/0/completion/"),
    "turn-texts": thing("/trajectories/{trajectory}/turns/0/texts/"),
    "trajectory-status": thing("/trajectories/{trajectory}/status/"),
    "trajectory-summary": thing("/trajectories/{trajectory}/summary/"),
    "trajectory-snapshots": act("/trajectories/{trajectory}/snapshots/", 409),
    "trajectory-branches": thing("/trajectories/{trajectory}/branches/"),
    "trajectory-branch": act("/trajectories/{trajectory}/branch/", 409, body="turn=0&size=1"),
    "trajectory-attack": act("/trajectories/{trajectory}/attacks/", 409, body="turn=0"),
    "trajectory-tree": thing("/trajectories/{trajectory}/tree/"),
    "trajectory-folder": thing("/trajectories/{trajectory}/folder/"),
    "group-folder": thing("/groups/{group}/folder/"),
    "trajectory-tree-rows": thing("/trajectories/{trajectory}/tree/rows/"),
    "task-side-by-side": thing("/experiments/tasks/c/{evaluation}/{evaluation}/{task}/"),
    "group-detail": thing("/groups/{group}/"),
    "group-lane": thing("/groups/{group}/lane/"),
    # --- live desktops
    "desktop-show": thing("/trajectories/{trajectory}/desktop/"),
    "desktop-turns": thing("/trajectories/{trajectory}/desktop/turns/"),
    "desktop-checks": thing("/trajectories/{trajectory}/desktop/checks/"),
    "desktop-state": thing("/trajectories/{trajectory}/desktop/state/"),
    "control-take": act("/trajectories/{trajectory}/control/", 409),
    "task-new": Row("get", "/new-task/", 200, 403, 200),
    "task-new POST": act("/new-task/", 400, stranger=400, body="screen=x"),
    "draft-panel": Row("get", "/trajectories/{trajectory}/draft/", 404, 403, 404),
    "draft-step": act("/trajectories/{trajectory}/draft/step/", 404, body="do=start"),
    "desktop-watch": act("/trajectories/{trajectory}/watch/"),
    "desktop-hold": act("/experiments/{experiment}/hold/"),
    # Control is one person's, here the owner's: another operator may not end it.
    "control-renew": by(Role.ADMIN, act("/controls/{control}/renew/", 200)),
    "control-hand-back": by(Role.ADMIN, act("/controls/{control}/hand-back/", 200)),
    "control-finish": by(Role.ADMIN, act("/controls/{control}/finish/", 200)),
    "demonstration-start": Row("get", "/demonstrate/", 200, 403, 200),
    "demonstration-start POST": act("/demonstrate/", 404, body="task=0"),
    # --- replay
    "replay-inbox": page("/replay/"),
    "replay-entries": page("/replay/entries/?ids={entry}"),
    "replay-list": page("/replay/list/"),
    "replay-clusters": page("/replay/clusters/"),
    "replay-acceptance": by(Role.ANNOTATOR, act("/replay/acceptance/", stranger=302, body=RULE)),
    "replay-clusters-keep": by(Role.ANNOTATOR, act("/replay/clusters/keep/", stranger=302, body="keep=3")),
    "replay-policies": page("/replay/policies/?policy={policy}", 404),
    "replay-policy-save": by(Role.ANNOTATOR, act("/replay/policies/save/", stranger=302, body="name=x")),
    "replay-snapshot-take": by(Role.ANNOTATOR, act("/replay/snapshots/take/", body="policy={policy}&name=x")),
    "replay-reviews": page("/replay/reviews/"),
    "replay-review-start": by(
        Role.ANNOTATOR, act("/replay/reviews/start/", 400, stranger=400, body="name=x")
    ),
    "replay-review": thing("/replay/reviews/{review}/"),
    "replay-review-undo": by(Role.ANNOTATOR, act("/replay/reviews/{review}/undo/", 404, body="label=0")),
    "replay-review-label": by(Role.ANNOTATOR, Row("get", "/replay/reviews/{review}/label/", 302, 403, 404)),
    "replay-review-label POST": by(
        Role.ANNOTATOR, act("/replay/reviews/{review}/label/", 404, body="label=0&verdict=gold")
    ),
    "replay-review-settle": by(
        Role.ANNOTATOR, act("/replay/reviews/{review}/settle/", 404, body="item=0&verdict=gold")
    ),
    "replay-guides": page("/replay/guides/"),
    "replay-guides POST": by(
        Role.ANNOTATOR, act("/replay/guides/", stranger=302, body="task_set={task_set}&text=x")
    ),
    "turn-labels": thing("/replay/turns/{trajectory}/"),
    "turn-mark": by(Role.ANNOTATOR, act("/replay/turns/{trajectory}/mark/", body="turn=0&mark=good")),
    "turn-edit": by(Role.ANNOTATOR, act("/replay/turns/{trajectory}/edit/", body="turn=1&change=first")),
    "process-labels": page("/replay/process-labels/"),
    "process-labels-import": by(Role.ANNOTATOR, act("/replay/process-labels/import/", stranger=302)),
    "replay-stats": page("/replay/stats/"),
    "replay-undo": by(Role.ANNOTATOR, act("/replay/undo/", stranger=302)),
    "replay-bulk": by(Role.ANNOTATOR, act("/replay/bulk/", stranger=302, body="verdict=gold&expected=1")),
    "replay-export": page("/replay/export/"),
    "replay-transfer": page("/replay/transfer/"),
    "replay-transfer POST": by(Role.ANNOTATOR, act("/replay/transfer/", 400, stranger=400)),
    "replay-import": thing("/replay/imports/{import}/"),
    "replay-import-part": thing("/replay/imports/{import}/part/"),
    "replay-import-start": by(Role.ANNOTATOR, act("/replay/imports/{import}/start/")),
    "replay-import-cancel": by(Role.ANNOTATOR, act("/replay/imports/{import}/cancel/")),
    "replay-detail": thing("/replay/{entry}/"),
    "replay-label": by(Role.ANNOTATOR, act("/replay/{entry}/label/", body="verdict=gold")),
    "replay-entry-undo": by(Role.ANNOTATOR, act("/replay/{entry}/undo/")),
    # --- tasks: this set all teams share; how its tasks went is the team's own
    "task-sets": page("/tasks/"),
    "task-set": page("/tasks/{task_set}/"),
    "task-show": page("/tasks/{task_set}/{task}/"),
    "task-editor": Row("get", "/task-editor/?task={task}", 200, 403, 200),
    "task-editor POST": act("/task-editor/", 422, stranger=422, body="text=x"),
    "task-try": Row("get", "/task-editor/try/?tried=0", 404, 403, 404),
    "task-try POST": act("/task-editor/try/", 422, stranger=422, body="text=x"),
    "task-check": act("/task-editor/check/", 200, stranger=200, body="text=x"),
    "task-verification": page("/tasks/{task_set}/{task}/verification/"),
    "task-verification POST": act("/tasks/{task_set}/{task}/verification/", stranger=302),
    "task-attacks": page("/tasks/{task_set}/{task}/attacks/"),
    "task-attacks POST": act("/tasks/{task_set}/{task}/attacks/", stranger=302),
    "exploit-dismiss": act("/exploits/{exploit}/dismiss/", body="why=x"),
    "task-upload": Row("get", "/task-upload/", 200, 403, 200),
    "task-upload POST": act("/task-upload/", 422, stranger=422),
    # --- samples
    "samples-seed": act("/samples/", stranger=302),
    "samples-delete": act("/samples/delete/", stranger=302),
    # --- reward lab
    "reward-lab": page("/rewards/"),
    "reward-try": Row("post", "/rewards/try/", 200, 200, 200, body=REWARD),
    "reward-save": act("/rewards/save/", stranger=302, body=REWARD + "&name=mine"),
    # --- scanners
    "scanner-list": page("/scanners/"),
    "scanner-new": Row("get", "/scanners/new/", 200, 403, 200),
    "scanner-save": act("/scanners/save/", stranger=302, body="name=mine&kind=loop"),
    "scanner-detail": thing("/scanners/{scanner}/"),
    "scan-preview": act("/scanners/{scanner}/preview/", 200, body="slice=buffer-all"),
    "scan-start": act("/scanners/{scanner}/start/", body="slice=buffer-all&max_read=1"),
    "scan-detail": thing("/scans/{scan}/"),
    "scan-part": thing("/scans/{scan}/part/"),
    "scan-cancel": act("/scans/{scan}/cancel/"),
    # --- reports
    "report-list": page("/reports/"),
    "report-new": Row("get", "/reports/new/", 200, 403, 200),
    "report-new POST": act("/reports/new/", 422, stranger=422),
    "report-detail": thing("/reports/{report}/"),
    "report-version": thing("/reports/{report}/v/1/"),
    "success-by-domain": page("/experiments/domains/"),
    "osworld-results": thing("/evaluations/{evaluation}/osworld/"),
    "report-new-version": Row("get", "/reports/{report}/new/", 200, 403, 404),
    "report-new-version POST": act("/reports/{report}/new/", 422),
    "report-picture": Row("get", f"/reports/{{report}}/v/1/{'0' * 64}.jpg", 404, 404, 404),
    "report-export": thing("/reports/{report}/v/1/table-1.csv"),
    "report-delete": act("/reports/{report}/delete/"),
    "export-shown": Row("post", "/exports/csv/", 200, 200, 200, LOGIN, TABLE_SHOWN, "application/json"),
    "report-link-create": act("/reports/{report}/v/1/links/", body="days=7"),
    "report-link-revoke": act("/reports/{report}/links/{link}/revoke/"),
    # A link needs no account.
    "public-report": Row("get", "/r/{token}/", 200, 200, 200, 200),
    "public-report-picture": Row("get", f"/r/{{token}}/{'0' * 64}.jpg", 404, 404, 404, 404),
    "public-report-export": Row("get", "/r/{token}/table-1.csv", 200, 200, 200, 200),
    # --- REST API
    "api:api-root": Row("get", "/api/v1/", 404, 404, 404),
    "api:openapi-json": api_read("/api/v1/openapi.json"),
    "api:openapi-view": page("/api/v1/docs"),
    "api:show_me": api_read("/api/v1/me"),
    "api:config_schema": api_read("/api/v1/config/schema"),
    "api:list_presets": api_read("/api/v1/config/presets"),
    "api:list_experiments": api_read("/api/v1/experiments"),
    "api:launch_experiment": api_act("/api/v1/experiments", 201, stranger=201, body=NEW),
    "api:check_experiment": api_act("/api/v1/experiments/preflight", 200, stranger=200, body=NEW),
    "api:show_experiment": api_read("/api/v1/experiments/{experiment}", 404),
    "api:edit_experiment": api_act("/api/v1/experiments/{experiment}", 200, body=NEW, method="patch"),
    "api:delete_experiment": api_act("/api/v1/experiments/{experiment}", 409, method="delete"),
    "api:list_views": api_read("/api/v1/views"),
    "api:save_view": Row("post", "/api/v1/views", 201, 201, 201, 401, VIEW, "application/json"),
    "api:delete_view": by(Role.ANNOTATOR, api_act("/api/v1/views/{view}", 204, method="delete")),
    "api:show_metrics": api_read("/api/v1/experiments/{experiment}/metrics", 404),
    "api:cancel_experiment": api_act("/api/v1/experiments/{experiment}/cancel", 200),
    "api:pause_experiment": api_act("/api/v1/experiments/{experiment}/pause", 200),
    "api:resume_experiment": api_act("/api/v1/experiments/{experiment}/resume", 409),
    "api:launch_sweep": api_act("/api/v1/sweeps", 201, stranger=201, body=SEEDS),
    "api:show_sweep": api_read("/api/v1/sweeps/{sweep}", 404),
    "api:cancel_sweep": api_act("/api/v1/sweeps/{sweep}/cancel", 200),
    "api:pause_sweep": api_act("/api/v1/sweeps/{sweep}/pause", 200),
    "api:resume_sweep": api_act("/api/v1/sweeps/{sweep}/resume", 409),
    "api:list_checkpoints": api_read("/api/v1/experiments/{experiment}/checkpoints", 404),
    "api:evaluate_checkpoint": api_act(
        "/api/v1/experiments/{experiment}/checkpoints/{checkpoint}/evaluate", 201
    ),
    "api:export_checkpoint": api_act("/api/v1/experiments/{experiment}/checkpoints/{checkpoint}/export", 201),
    "api:show_export": api_read("/api/v1/experiments/{experiment}/exports/{export}", 404),
    "api:list_trajectories": api_read("/api/v1/trajectories"),
    "api:show_trajectory": api_read("/api/v1/trajectories/{trajectory}", 404),
    "api:attack_from_turn": api_act("/api/v1/trajectories/{trajectory}/attacks", 409, body='{"turn": 0}'),
    "api:branch_trajectory": api_act("/api/v1/trajectories/{trajectory}/branches", 409, body='{"turn": 0}'),
    "api:show_tree": api_read("/api/v1/trajectories/{trajectory}/tree", 404),
    "api:list_snapshots": api_read("/api/v1/trajectories/{trajectory}/snapshots", 404),
    "api:keep_snapshots": api_act("/api/v1/trajectories/{trajectory}/snapshots", 409, body='{"keep": true}'),
    "api:list_audit": by(Role.ADMIN, Row("get", "/api/v1/audit", 200, 403, 200, 401)),
    "api:list_entries": api_read("/api/v1/replay"),
    "api:show_entry": api_read("/api/v1/replay/{entry}", 404),
    "api:label_entry": by(Role.ANNOTATOR, api_act("/api/v1/replay/{entry}/label", 200, body=LABEL)),
    "api:list_reports": api_read("/api/v1/reports"),
    "api:write_report": api_act("/api/v1/reports", 400, stranger=400, body=REPORT),
    "api:write_report_version": api_act("/api/v1/reports/{report}/versions", 400, body=REPORT),
    "api:show_report_version": api_read("/api/v1/reports/{report}/versions/1", 404),
    "api:export_osworld_results": api_read("/api/v1/evaluations/{evaluation}/osworld", 404),
    "api:export_trajectory_folder": api_read("/api/v1/trajectories/{trajectory}/folder", 404),
    "api:export_group_folder": api_read("/api/v1/groups/{group}/folder", 404),
    "api:delete_report": api_act("/api/v1/reports/{report}", 204, method="delete"),
    "api:list_imports": api_read("/api/v1/replay/imports"),
    "api:check_import": Row("post", "/api/v1/replay/imports", 422, 422, 422, 401),
    "api:show_import": api_read("/api/v1/replay/imports/{import}", 404),
    "api:start_import": by(Role.ANNOTATOR, api_act("/api/v1/replay/imports/{import}/start", 409)),
    "api:cancel_import": by(Role.ANNOTATOR, api_act("/api/v1/replay/imports/{import}/cancel", 200)),
    "api:list_queue": api_read("/api/v1/queue"),
    "api:set_priority": api_act("/api/v1/experiments/{experiment}/priority", 200, body='{"priority": 3}'),
    "api:move_experiment": api_act("/api/v1/experiments/{experiment}/move", 200),
    "api:cancel_many": api_act("/api/v1/experiments/many/cancel", 409, stranger=409, body=NONE),
    "api:undo_cancel": api_act(
        "/api/v1/experiments/many/cancel/undo", 400, stranger=400, body='{"undo": "x"}'
    ),
    "api:tag_many": api_act(
        "/api/v1/experiments/many/tag", 409, stranger=409, body='{"ids": [0], "tag": "x"}'
    ),
    "api:archive_many": api_act("/api/v1/experiments/many/archive", 409, stranger=409, body=NONE),
    "api:delete_many": api_act("/api/v1/experiments/many/delete", 409, stranger=409, body=NONE),
    "api:show_config": api_read("/api/v1/experiments/{experiment}/config", 404),
    "api:list_alarms": api_read("/api/v1/experiments/{experiment}/alarms", 404),
    "api:acknowledge_alarm": api_act("/api/v1/experiments/{experiment}/alarms/none/acknowledge", 404),
    "api:show_gpus": api_read("/api/v1/experiments/{experiment}/gpus", 404),
    "api:list_logs": api_read("/api/v1/experiments/{experiment}/logs", 404),
    "api:read_log": Row("get", "/api/v1/experiments/{experiment}/logs/no.log", 404, 404, 404, 401),
    "api:download_export": Row(
        "get", "/api/v1/experiments/{experiment}/exports/{export}/tar", 409, 409, 404, 401
    ),
    "api:remove_export": api_act("/api/v1/experiments/{experiment}/exports/{export}", 204, method="delete"),
    "api:export_trajectories": api_read("/api/v1/experiments/{experiment}/trajectories", 404),
    "api:list_groups": api_read("/api/v1/experiments/{experiment}/groups", 404),
    "api:show_group": api_read("/api/v1/groups/{group}", 404),
    "api:compare_experiments": api_read("/api/v1/compare?id={experiment}&id={experiment}", 404),
    "api:read_frame": api_read("/api/v1/frames/{frame}/jpg", 404),
    "api:show_screen": api_read("/api/v1/trajectories/{trajectory}/screen", 404),
    "api:take_control": api_act("/api/v1/trajectories/{trajectory}/control", 409),
    "api:renew_control": by(Role.ADMIN, api_act("/api/v1/controls/{control}/renew", 200)),
    "api:hand_back_control": by(Role.ADMIN, api_act("/api/v1/controls/{control}/hand-back", 200)),
    "api:finish_control": by(Role.ADMIN, api_act("/api/v1/controls/{control}/finish", 200)),
    "api:list_demonstration_desktops": Row("get", "/api/v1/demonstrations/desktops", 200, 403, 200, 401),
    "api:start_demonstration": api_act("/api/v1/demonstrations", 404, body='{"task": 0}'),
    "api:show_fleet": api_read("/api/v1/fleet"),
    "api:show_fleet_history": api_read("/api/v1/fleet/history"),
    "api:list_desktops": api_read("/api/v1/fleet/desktops"),
    "api:show_desktop": api_read("/api/v1/fleet/desktops/{desktop}"),
    "api:operate_desktop": api_act("/api/v1/fleet/desktops/{desktop}/kill", 202, stranger=403),
    "api:list_operations": api_read("/api/v1/fleet/operations"),
    "api:drain_worker": api_act(
        "/api/v1/fleet/workers/{worker}/drain", 200, stranger=403, body='{"on": true}'
    ),
    "api:drain_host": api_act("/api/v1/fleet/hosts/{host}/drain", 200, stranger=403, body='{"on": true}'),
    "api:invite_host": by(Role.ADMIN, api_act("/api/v1/fleet/hosts", 201, stranger=403)),
    "api:revoke_host": by(Role.ADMIN, api_act("/api/v1/fleet/joined/{joined}/revoke", 204, stranger=403)),
    "api:list_task_sets": api_read("/api/v1/tasks"),
    "api:list_tasks": api_read("/api/v1/tasks/{task_set}"),
    "api:show_task": api_read("/api/v1/tasks/{task_set}/{task}"),
    "api:save_task": api_act("/api/v1/tasks/{task_set}", 400, stranger=400, body='{"task": {}}'),
    "api:verify_task": api_act("/api/v1/tasks/{task_set}/{task}/verification", 201, stranger=201),
    "api:show_attacks": api_read("/api/v1/tasks/{task_set}/{task}/attacks"),
    "api:start_attacks": api_act("/api/v1/tasks/{task_set}/{task}/attacks", 201, stranger=201),
    "api:ask_for_attacks": api_act(
        "/api/v1/tasks/{task_set}/{task}/attacks/model",
        201,
        stranger=201,
        body='{"url": "http://127.0.0.1:9/v1", "model": "m"}',
    ),
    "api:dismiss_exploit": api_act("/api/v1/exploits/{exploit}/dismiss", 200, body='{"why": "x"}'),
    "api:upload_tasks": Row("post", "/api/v1/tasks/new-set/files", 422, 422, 422, 401),  # no file
    "api:list_rewards": api_read("/api/v1/rewards"),
    "api:try_rewards": Row(
        "post", "/api/v1/rewards/try", 200, 200, 200, 401, f"{{{TERMS}}}", "application/json"
    ),
    "api:save_rewards": api_act("/api/v1/rewards", 201, stranger=201, body=f'{{"name": "mine", {TERMS}}}'),
    "api:list_scanners": api_read("/api/v1/scanners"),
    "api:save_scanner": api_act(
        "/api/v1/scanners", 201, stranger=201, body='{"name": "mine", "definition": {"kind": "loop"}}'
    ),
    "api:show_scanner": api_read("/api/v1/scanners/{scanner}", stranger=404),
    "api:list_findings": api_read("/api/v1/scanners/{scanner}/findings", stranger=404),
    "api:preview_scan": api_act("/api/v1/scanners/{scanner}/preview", 200),
    "api:start_scan": api_act("/api/v1/scanners/{scanner}/scans", 201, body='{"max_read": 1}'),
    "api:list_scans": api_read("/api/v1/scans"),
    "api:show_scan": api_read("/api/v1/scans/{scan}", stranger=404),
    "api:cancel_scan": api_act("/api/v1/scans/{scan}/cancel", 200),
    "api:seed_samples": api_act("/api/v1/samples", 201, stranger=201),
    "api:delete_samples": api_act("/api/v1/samples", 204, stranger=204, method="delete"),
    "api:list_members": api_read("/api/v1/team/members"),
    "api:add_member": by(
        Role.ADMIN, api_act("/api/v1/team/members", 201, stranger=201, body='{"username": "new"}')
    ),
    "api:change_role": by(
        Role.ADMIN,
        api_act("/api/v1/team/members/{member}", 200, body='{"role": "viewer"}', method="patch"),
    ),
    "api:remove_member": by(Role.ADMIN, api_act("/api/v1/team/members/{member}", 204, method="delete")),
    "api:reset_password": by(Role.ADMIN, api_act("/api/v1/team/members/{member}/password", 409)),
    "api:show_prices": api_read("/api/v1/team/prices"),
    "api:save_prices": by(Role.ADMIN, api_act("/api/v1/team/prices", 200, stranger=200, method="put")),
    "api:list_rules": api_read("/api/v1/team/retention"),
    "api:save_rule": by(
        Role.ADMIN,
        api_act("/api/v1/team/retention", 200, stranger=200, body='{"max_age_days": 9}', method="put"),
    ),
    "api:delete_rule": by(Role.ADMIN, api_act("/api/v1/team/retention/{rule}", 204, method="delete")),
    "api:list_notification_rules": api_read("/api/v1/notifications/rules"),
    "api:add_notification_rule": by(
        Role.ADMIN,
        api_act(
            "/api/v1/notifications/rules",
            201,
            stranger=201,
            body='{"channel": "browser", "kinds": ["failed"]}',
        ),
    ),
    "api:test_notification_rule": by(
        Role.ADMIN, api_act("/api/v1/notifications/rules/{notification_rule}/test", 201)
    ),
    "api:switch_notification_rule": by(
        Role.ADMIN,
        api_act(
            "/api/v1/notifications/rules/{notification_rule}", 200, body='{"is_on": false}', method="patch"
        ),
    ),
    "api:delete_notification_rule": by(
        Role.ADMIN, api_act("/api/v1/notifications/rules/{notification_rule}", 204, method="delete")
    ),
    "api:list_notifications": api_read("/api/v1/notifications"),
    "api:retry_notification": by(Role.ADMIN, api_act("/api/v1/notifications/{delivery}/retry", 200)),
    "api:list_report_links": Row("get", "/api/v1/reports/{report}/links", 200, 403, 404, 401),
    "api:make_report_link": api_act("/api/v1/reports/{report}/versions/1/links", 201),
    "api:revoke_report_link": api_act("/api/v1/reports/{report}/links/{link}", 204, method="delete"),
    "api:show_replay_stats": api_read("/api/v1/replay/stats"),
    "api:label_many": by(
        Role.ANNOTATOR,
        api_act("/api/v1/replay/bulk", 409, stranger=409, body='{"to": "gold", "expected": 99}'),
    ),
    "api:undo_latest_label": by(Role.ANNOTATOR, api_act("/api/v1/replay/undo", 409, stranger=409)),
    "api:list_clusters": api_read("/api/v1/replay/clusters"),
    "api:set_acceptance_rule": by(
        Role.ANNOTATOR, api_act("/api/v1/replay/acceptance", 200, stranger=200, body="{}")
    ),
    "api:keep_best": by(
        Role.ANNOTATOR, api_act("/api/v1/replay/clusters/keep", 200, stranger=200, body='{"keep": 3}')
    ),
    "api:list_policies": api_read("/api/v1/replay/policies"),
    "api:try_policy": Row(
        "post", "/api/v1/replay/policies/try", 200, 200, 200, 401, "{}", "application/json"
    ),
    "api:save_policy": by(
        Role.ANNOTATOR, api_act("/api/v1/replay/policies", 200, stranger=200, body='{"name": "x"}')
    ),
    "api:list_buffer_snapshots": api_read("/api/v1/replay/snapshots"),
    "api:take_buffer_snapshot": by(
        Role.ANNOTATOR, api_act("/api/v1/replay/snapshots", 404, body='{"policy": 0, "name": "x"}')
    ),
    "api:list_reviews": api_read("/api/v1/replay/reviews"),
    "api:start_review": by(
        Role.ANNOTATOR,
        api_act("/api/v1/replay/reviews", 400, stranger=400, body='{"name": "x", "people": []}'),
    ),
    "api:show_review": api_read("/api/v1/replay/reviews/{review}", 404),
    "api:show_next_review_label": by(
        Role.ANNOTATOR, Row("get", "/api/v1/replay/reviews/{review}/label", 200, 403, 404, 401)
    ),
    "api:submit_review_label": by(
        Role.ANNOTATOR,
        api_act("/api/v1/replay/reviews/{review}/label", 404, body='{"label": 0, "verdict": "gold"}'),
    ),
    "api:undo_review_label": by(Role.ANNOTATOR, api_act("/api/v1/replay/reviews/{review}/undo", 409)),
    "api:settle_review_item": by(
        Role.ANNOTATOR,
        api_act("/api/v1/replay/reviews/{review}/settle", 404, body='{"item": 0, "verdict": "gold"}'),
    ),
    "api:list_guides": api_read("/api/v1/replay/guides"),
    "api:save_guide": by(
        Role.ANNOTATOR,
        api_act("/api/v1/replay/guides", 400, stranger=400, body='{"task_set": "none", "text": "x"}'),
    ),
    "api:show_turn_labels": api_read("/api/v1/trajectories/{trajectory}/turn-labels", 404),
    "api:rate_turn": by(
        Role.ANNOTATOR, api_act("/api/v1/trajectories/{trajectory}/turn-labels", 200, body='{"turn": 0}')
    ),
    "api:edit_entry": by(
        Role.ANNOTATOR, api_act("/api/v1/replay/{entry}/edit", 200, body="{}", method="put")
    ),
    "api:split_entry": by(Role.ANNOTATOR, api_act("/api/v1/replay/{entry}/split", 200, body='{"turn": 1}')),
    "api:export_process_labels": api_read("/api/v1/replay/process-labels"),
    "api:import_process_labels": Row("post", "/api/v1/replay/process-labels", 422, 422, 422, 401),
    "api:export_entries": api_read("/api/v1/replay/export"),
    "api:undo_label": by(Role.ANNOTATOR, api_act("/api/v1/replay/{entry}/undo", 409)),
}
READ_BY_ANY_METHOD = {
    *("healthz", "readyz", "frame-show", "queue-rows"),
    *("api:api-root", "api:openapi-json", "api:openapi-view"),
}
"""They change nothing, so they ask for no method."""
UNRECORDED = {
    # a draft, a question, or a sign of life: nothing is changed
    *("launch-preflight", "launch-yaml", "launch-scale", "launch-form", "api:check_experiment"),
    *("task-check", "reward-try", "api:try_rewards", "api:try_policy", "export-shown"),
    *("control-renew", "api:renew_control", "replay-import-cancel", "api:cancel_import"),
    *("scan-preview", "api:preview_scan"),
    # the person's own
    *("view-save", "view-delete", "api:save_view", "api:delete_view", "team-switch"),
    # this row's body, or this world, leaves nothing to change
    *("api:save_prices", "api:rate_turn", "api:edit_entry", "api:keep_best", "replay-clusters-keep"),
    *("samples-delete", "api:delete_samples"),
}
"""Answered as done without a row in the audit log, which tells of every other change."""


def test_every_http_route_has_a_row_and_every_row_a_route():
    assert set(all_routes(get_resolver().url_patterns)) == {name.split()[0] for name in TABLE}


def send(client: Client, world: World, row: Row, method: str) -> HttpResponse:
    path, body = row.path.format(**world.paths), row.body
    if not body.startswith("{"):
        body = body.format(**world.paths)
    if method == "get":
        return client.get(path)
    return client.generic(method.upper(), path, body, row.content_type)


def is_done(response: HttpResponse) -> bool:
    """Whether what was asked for was done: pages answer a refusal with a redirect and a message."""
    problems = [each for each in get_messages(response.wsgi_request) if each.level >= messages.WARNING]
    return response.status_code < 400 and not problems


@pytest.mark.parametrize("name", TABLE)
def test_http(lasting_world, clients, name):
    row, answers = TABLE[name], {}
    for person, client in clients.items():
        with transaction.atomic():  # what one person changes, the next one finds as it was
            before = AuditEntry.objects.count()
            response = send(client, lasting_world, row, row.method)
            is_recorded = AuditEntry.objects.count() > before
            transaction.set_rollback(True)
        if person == "owner" and row.method != "get":
            assert is_recorded is (is_done(response) and name not in UNRECORDED), "in the audit log"
        to_sign_in = response.status_code == 302 and response["Location"].startswith("/login/?next=")
        answers[person] = LOGIN if to_sign_in else response.status_code
    assert answers == {person: row.expected(person) for person in PEOPLE}


def test_no_route_takes_a_method_without_a_row(lasting_world, clients):
    by_path: dict[str, set[str]] = {}
    for row in TABLE.values():
        by_path.setdefault(row.path.partition("?")[0], set()).add(row.method)
    taken = set()
    for name, row in TABLE.items():
        other = "post" if row.method == "get" else "get"
        if other not in by_path[row.path.partition("?")[0]]:
            with transaction.atomic():
                status = send(clients["owner"], lasting_world, row, other).status_code
                transaction.set_rollback(True)
            taken |= {name} if status != 405 else set()
    assert taken == READ_BY_ANY_METHOD | {"login", "password-change"}
