"""What a person can do on a page, a script can do through the API: a row for each route that takes a POST.

What pages only show needs no row, and neither do saved views, samples and prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from webapp.api.urls import api

HELP = "helps to fill in a form; a script writes the value"
BROWSER = "signs a person in; a script has a token"
HOSTS = "joined hosts call it with their own identity"
NOT_ASKED = {"view-save", "view-delete", "samples-seed", "samples-delete", "prices"}
VERBS: dict[str, str | tuple[str, ...]] = {
    "two-step-on": BROWSER,
    "two-step-off": BROWSER,
    "token-create": "a token that made tokens would outlive its own end",
    "token-revoke": "the same: people end tokens on their profile page",
    "member-add": ("add_member",),
    "member-role": ("change_role",),
    "member-remove": ("remove_member",),
    "member-password": ("reset_password",),
    "team-switch": "the header Deskhand-Team names the team",
    "experiments-cancel": ("cancel_many",),
    "experiments-cancel-undo": ("undo_cancel",),
    "experiments-tag": ("tag_many",),
    "experiments-archive": ("archive_many",),
    "alarm-acknowledge": ("acknowledge_alarm",),
    "experiment-edit": ("edit_experiment",),
    "experiment-pause": ("pause_experiment",),
    "experiment-resume": ("resume_experiment",),
    "experiment-cancel": ("cancel_experiment",),
    "experiment-priority": ("set_priority",),
    "experiment-move": ("move_experiment",),
    "experiment-launch": (
        "launch_experiment",
        "launch_sweep",
    ),
    "launch-preflight": ("check_experiment",),
    "launch-yaml": HELP,
    "launch-scale": HELP,
    "launch-form": HELP,
    "sweep-pause": ("pause_sweep",),
    "sweep-resume": ("resume_sweep",),
    "sweep-cancel": ("cancel_sweep",),
    "checkpoint-evaluate": ("evaluate_checkpoint",),
    "checkpoint-export": ("export_checkpoint",),
    "export-remove": ("remove_export",),
    "host-add": ("invite_host",),
    "host-revoke": ("revoke_host",),
    "host-join": HOSTS,
    "host-ask": HOSTS,
    "host-reports": HOSTS,
    "worker-drain": ("drain_worker",),
    "host-drain": ("drain_host",),
    "desktop-operate": ("operate_desktop",),
    "trajectory-snapshots": ("keep_snapshots",),
    "trajectory-branch": ("branch_trajectory",),
    "experiments-delete": (
        "delete_many",
        "delete_experiment",
    ),
    "replay-undo": ("undo_latest_label",),
    "replay-bulk": ("label_many",),
    "replay-acceptance": ("set_acceptance_rule",),
    "replay-clusters-keep": ("keep_best",),
    "replay-policy-save": ("save_policy",),
    "replay-snapshot-take": ("take_buffer_snapshot",),
    "replay-review-start": ("start_review",),
    "replay-review-label": (
        "show_next_review_label",
        "submit_review_label",
    ),
    "replay-review-undo": ("undo_review_label",),
    "replay-review-settle": ("settle_review_item",),
    "replay-guides": (
        "list_guides",
        "save_guide",
    ),
    "turn-mark": ("rate_turn",),
    "turn-edit": (
        "edit_entry",
        "split_entry",
    ),
    "process-labels-import": ("import_process_labels",),
    "replay-transfer": (
        "check_import",
        "list_imports",
    ),
    "replay-import-start": ("start_import",),
    "replay-import-cancel": ("cancel_import",),
    "replay-label": ("label_entry",),
    "replay-entry-undo": ("undo_label",),
    "reward-try": ("try_rewards",),
    "reward-save": ("save_rewards",),
    "scanner-save": ("save_scanner",),
    "scan-preview": ("preview_scan",),
    "scan-start": ("start_scan",),
    "scan-cancel": ("cancel_scan",),
    "task-editor": ("save_task",),
    "task-check": HELP,
    "task-try": "queues runs of a task that is not saved; a script saves one and verifies it",
    "task-new": "opens a desktop for the hands of a person",
    "draft-step": "of a person at that desktop",
    "task-upload": ("upload_tasks",),
    "task-verification": ("verify_task",),
    "task-attacks": (
        "show_attacks",
        "start_attacks",
        "ask_for_attacks",
    ),
    "trajectory-attack": ("attack_from_turn",),
    "exploit-dismiss": ("dismiss_exploit",),
    "desktop-hold": "finds a trajectory for a person at a page; a script names one",
    "desktop-watch": "has an agent wait while a person looks at a page",
    "control-take": ("take_control",),
    "control-renew": ("renew_control",),
    "control-hand-back": ("hand_back_control",),
    "control-finish": ("finish_control",),
    "demonstration-start": (
        "list_demonstration_desktops",
        "start_demonstration",
    ),
    "export-shown": "turns a table that the page shows into a file; a script has the numbers",
    "report-new": ("write_report",),
    "report-delete": ("delete_report",),
    "report-new-version": ("write_report_version",),
    "report-link-create": (
        "make_report_link",
        "list_report_links",
    ),
    "report-link-revoke": ("revoke_report_link",),
    "retention-save": ("save_rule",),
    "retention-delete": ("delete_rule",),
    "notification-add": ("add_notification_rule",),
    "notification-test": ("test_notification_rule",),
    "notification-switch": ("switch_notification_rule",),
    "notification-delete": ("delete_notification_rule",),
    "notification-retry": ("retry_notification",),
}
"""Route of a page -> the operations of the API that do the same, or why there is none."""


def posts(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    """Names of the pages' routes that take a POST; the API's own and Django's admin are left out."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace is None:
                yield from posts(pattern.url_patterns)
        elif "POST" in methods_of(pattern.callback):
            yield str(pattern.name)


def methods_of(view: Callable[..., Any] | None) -> list[str]:
    """What `require_http_methods` lets pass; none of Django's own views, which sign in and out."""
    while view is not None:
        code, cells = getattr(view, "__code__", None), getattr(view, "__closure__", None)
        closed = dict(zip(getattr(code, "co_freevars", ()), cells or (), strict=True))
        if "request_method_list" in closed:
            return list(closed["request_method_list"].cell_contents)
        view = getattr(view, "__wrapped__", None)
    return []


def operations() -> set[str]:
    """Every operation of the API's schema."""
    paths = api.get_openapi_schema()["paths"].values()
    return {operation["operationId"] for methods in paths for operation in methods.values()}


def holes() -> list[str]:
    """What is missing, in sentences."""
    routes, known = set(posts(get_resolver().url_patterns)) - NOT_ASKED, operations()
    called = {name for calls in VERBS.values() if not isinstance(calls, str) for name in calls}
    return [
        *(f"{name}: a verb without a row in VERBS" for name in sorted(routes - VERBS.keys())),
        *(f"{name}: a row without a route" for name in sorted(VERBS.keys() - routes)),
        *(f"{name}: no operation of the API" for name in sorted(called - known)),
    ]


def test_every_verb_of_a_page_has_an_operation():
    assert holes() == []


def test_a_hole_is_found(monkeypatch):
    monkeypatch.delitem(VERBS, "experiment-move")
    monkeypatch.setitem(VERBS, "experiment-pause", ("no_such_operation",))
    monkeypatch.setitem(VERBS, "fleet-show", ("show_fleet",))
    assert holes() == [
        "experiment-move: a verb without a row in VERBS",
        "fleet-show: a row without a route",
        "no_such_operation: no operation of the API",
    ]
