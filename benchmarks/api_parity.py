"""Which button has which route of the API, and which call of the Python client.

    .venv/bin/python -m benchmarks.api_parity        (exit 1 when there is a hole)

The rows are the pages' routes as the URL map has them; `ROUTES` says what a script calls instead, or why
there is nothing to call. Every operation of the API has to be a method of the client.
"""

from __future__ import annotations

import os
import sys

PAGE = "a page; what it shows is read by the operations of its things"
PART = "a part of a page, as HTML"
HELP = "helps to fill in a form; a script writes the value"
BROWSER = "signs a person in; a script has a token"
HOSTS = "joined hosts call it with their own identity"
PUBLIC = "a report's link, which needs no account"
ROUTES: dict[str, str | tuple[str, ...]] = {
    "healthz": "answers load balancers",
    "readyz": "answers load balancers",
    "metrics": "answers Prometheus",
    "home": PAGE,
    **dict.fromkeys(
        ("help-show", "help-page", "help-search", "help-file"), "the documentation lies in docs/"
    ),
    "frame-show": ("read_frame",),
    # --- account
    "login": BROWSER,
    "logout": BROWSER,
    "sso-start": BROWSER,
    "sso-callback": BROWSER,
    "two-step-show": BROWSER,
    "two-step-on": BROWSER,
    "two-step-off": BROWSER,
    "password-change": BROWSER,
    "profile-show": ("show_me",),
    "token-create": "a token that made tokens would outlive its own end",
    "token-revoke": "the same: people end tokens on their profile page",
    "team-switch": "the header Deskhand-Team names the team",
    "team-show": ("list_members",),
    "member-add": ("add_member",),
    "member-role": ("change_role",),
    "member-remove": ("remove_member",),
    "member-password": ("reset_password",),
    "view-save": ("save_view",),
    "view-delete": ("delete_view",),
    "audit-list": ("list_audit",),
    "audit-export": ("list_audit",),
    # --- storage
    "storage-show": ("list_rules",),
    "retention-save": ("save_rule",),
    "retention-delete": ("delete_rule",),
    # --- notifications
    "notification-list": ("list_notification_rules", "list_notifications"),
    "notification-log": PART,
    "notification-cursor": "where a browser that shows notifications begins",
    "notification-add": ("add_notification_rule",),
    "notification-test": ("test_notification_rule",),
    "notification-switch": ("switch_notification_rule",),
    "notification-delete": ("delete_notification_rule",),
    "notification-retry": ("retry_notification",),
    "notification-picture": "a message's link, which needs no account",
    # --- experiments
    "experiment-list": ("list_experiments",),
    "experiment-rows": PART,
    "experiment-compare": ("compare_experiments",),
    "evaluation-matrix": PAGE,
    "success-by-domain": PAGE,
    "osworld-results": ("export_osworld_results",),
    "experiments-cancel": ("cancel_many",),
    "experiments-cancel-undo": ("undo_cancel",),
    "experiments-tag": ("tag_many",),
    "experiments-archive": ("archive_many",),
    "experiments-delete": ("delete_many", "delete_experiment"),
    "experiment-launch": ("launch_experiment", "launch_sweep"),
    "launch-preflight": ("check_experiment",),
    "launch-yaml": HELP,
    "launch-scale": HELP,
    "launch-form": HELP,
    "prices": ("show_prices", "save_prices"),
    "queue-show": ("list_queue",),
    "queue-rows": PART,
    "sweep-detail": ("show_sweep",),
    "sweep-rows": PART,
    "sweep-cost": PART,
    "sweep-charts": PART,
    "sweep-pause": ("pause_sweep",),
    "sweep-resume": ("resume_sweep",),
    "sweep-cancel": ("cancel_sweep",),
    "experiment-detail": ("show_experiment",),
    "experiment-yaml": ("show_config",),
    "experiment-part": PART,
    "experiment-metrics": ("show_metrics",),
    "experiment-gpus": ("show_gpus",),
    "experiment-log": ("list_logs", "read_log"),
    "alarm-show": ("list_alarms",),
    "alarm-acknowledge": ("acknowledge_alarm",),
    "experiment-pause": ("pause_experiment",),
    "experiment-resume": ("resume_experiment",),
    "experiment-cancel": ("cancel_experiment",),
    "experiment-edit": ("edit_experiment",),
    "experiment-priority": ("set_priority",),
    "experiment-move": ("move_experiment",),
    "checkpoint-evaluate": ("evaluate_checkpoint",),
    "checkpoint-export": ("export_checkpoint",),
    "export-remove": ("remove_export",),
    "export-download": ("download_export",),
    # --- fleet
    "fleet-show": ("show_fleet", "list_desktops", "list_operations"),
    "fleet-parts": PART,
    "fleet-history": ("show_fleet_history",),
    "fleet-desktop": ("show_desktop",),
    "fleet-desktop-part": PART,
    "boot-failure-screen": PAGE,
    "desktop-operate": ("operate_desktop",),
    "worker-drain": ("drain_worker",),
    "host-drain": ("drain_host",),
    "host-add": ("invite_host",),
    "host-revoke": ("revoke_host",),
    "host-authority": HOSTS,
    "host-join": HOSTS,
    "host-ask": HOSTS,
    "host-reports": HOSTS,
    # --- trajectories
    "trajectory-list": ("list_trajectories",),
    "trajectory-detail": ("show_trajectory",),
    "trajectory-turns": PART,
    "turn-completion": PART,
    "trajectory-status": PART,
    "trajectory-summary": PART,
    "trajectory-snapshots": ("keep_snapshots",),
    "trajectory-branches": ("list_snapshots",),
    "trajectory-branch": ("branch_trajectory",),
    "trajectory-attack": ("attack_from_turn",),
    "trajectory-tree": ("show_tree",),
    "trajectory-tree-rows": PART,
    "task-side-by-side": PAGE,
    "trajectory-folder": ("export_trajectory_folder",),
    "group-folder": ("export_group_folder",),
    "group-detail": ("show_group",),
    "group-lane": PART,
    # --- live desktops
    "desktop-show": ("show_screen",),
    "desktop-turns": PART,
    "desktop-checks": PART,
    "desktop-state": ("show_screen",),
    "control-take": ("take_control",),
    "control-renew": ("renew_control",),
    "control-hand-back": ("hand_back_control",),
    "control-finish": ("finish_control",),
    "demonstration-start": ("list_demonstration_desktops", "start_demonstration"),
    # --- replay
    "replay-inbox": ("list_entries",),
    "replay-entries": PART,
    "replay-list": ("list_entries",),
    "replay-clusters": ("list_clusters",),
    "replay-clusters-keep": ("keep_best",),
    "replay-policies": ("list_policies", "try_policy", "list_buffer_snapshots"),
    "replay-policy-save": ("save_policy",),
    "replay-snapshot-take": ("take_buffer_snapshot",),
    "replay-reviews": ("list_reviews",),
    "replay-review-start": ("start_review",),
    "replay-review": ("show_review",),
    "replay-review-label": ("show_next_review_label", "submit_review_label"),
    "replay-review-settle": ("settle_review_item",),
    "replay-review-undo": ("undo_review_label",),
    "replay-guides": ("list_guides", "save_guide"),
    "turn-labels": ("show_turn_labels",),
    "turn-mark": ("rate_turn",),
    "turn-edit": ("edit_entry", "split_entry"),
    "process-labels": ("export_process_labels",),
    "process-labels-import": ("import_process_labels",),
    "replay-stats": ("show_replay_stats",),
    "replay-undo": ("undo_latest_label",),
    "replay-bulk": ("label_many",),
    "replay-export": ("export_entries",),
    "replay-transfer": ("check_import", "list_imports"),
    "replay-import": ("show_import",),
    "replay-import-part": PART,
    "replay-import-start": ("start_import",),
    "replay-import-cancel": ("cancel_import",),
    "replay-detail": ("show_entry",),
    "replay-label": ("label_entry",),
    "replay-entry-undo": ("undo_label",),
    # --- samples
    "samples-seed": ("seed_samples",),
    "samples-delete": ("delete_samples",),
    # --- tasks
    "task-sets": ("list_task_sets",),
    "task-set": ("list_tasks",),
    "task-show": ("show_task",),
    "task-editor": ("save_task",),
    "task-check": HELP,
    "task-verification": ("verify_task",),
    "task-attacks": ("show_attacks", "start_attacks", "ask_for_attacks"),
    "exploit-dismiss": ("dismiss_exploit",),
    "task-upload": ("upload_tasks",),
    # --- rewards
    "reward-lab": ("list_rewards",),
    "reward-try": ("try_rewards",),
    "reward-save": ("save_rewards",),
    # --- scanners
    "scanner-list": ("list_scanners", "list_scans"),
    "scanner-new": HELP,
    "scanner-save": ("save_scanner",),
    "scanner-detail": ("show_scanner", "list_findings"),
    "scan-preview": ("preview_scan",),
    "scan-start": ("start_scan",),
    "scan-detail": ("show_scan",),
    "scan-part": PART,
    "scan-cancel": ("cancel_scan",),
    # --- reports
    "report-list": ("list_reports",),
    "report-new": ("write_report",),
    "report-detail": ("show_report_version",),
    "report-version": ("show_report_version",),
    "report-new-version": ("write_report_version",),
    "report-picture": ("read_frame",),
    "report-export": ("show_report_version",),
    "report-folder": ("export_report_folder",),
    "report-delete": ("delete_report",),
    "report-link-create": ("make_report_link", "list_report_links"),
    "report-link-revoke": ("revoke_report_link",),
    "export-shown": "turns a table that the page shows into a file; a script has the numbers",
    "public-report": PUBLIC,
    "public-report-picture": PUBLIC,
    "public-report-export": PUBLIC,
}
WITHOUT_BUTTON = {
    "config_schema",
    "list_presets",
    "list_checkpoints",
    "show_export",
    "export_trajectories",
    "list_groups",
    "list_views",
}
"""Operations that no page's route stands for by itself."""


def page_routes() -> set[str]:
    """Names of the pages' routes; the API's own and Django's admin are left out."""
    from django.urls import get_resolver

    from testing.web_world import all_routes

    return {name for name in all_routes(get_resolver().url_patterns) if ":" not in name}


def operations() -> set[str]:
    """Every operation of the API's schema."""
    from webapp.api.urls import api

    return {
        operation["operationId"]
        for methods in api.get_openapi_schema()["paths"].values()
        for operation in methods.values()
    }


def holes() -> list[str]:
    """What is missing, in sentences."""
    from deskhand_client import Client

    routes, known = page_routes(), operations()
    called = {name for calls in ROUTES.values() if not isinstance(calls, str) for name in calls}
    return [
        *(f"{name}: a route without a row in ROUTES" for name in sorted(routes - ROUTES.keys())),
        *(f"{name}: a row without a route" for name in sorted(ROUTES.keys() - routes)),
        *(f"{name}: no operation of the API" for name in sorted((called | WITHOUT_BUTTON) - known)),
        *(f"{name}: an operation without a row" for name in sorted(known - called - WITHOUT_BUTTON)),
        *(f"{name}: the client has no such method" for name in sorted(known) if not hasattr(Client, name)),
    ]


def table() -> str:
    """Button x operation = client call, as Markdown."""
    rows = ["| route of the page | operation, and method of the client |", "|---|---|"]
    for name, calls in ROUTES.items():
        cell = f"– ({calls})" if isinstance(calls, str) else ", ".join(f"`{call}`" for call in calls)
        rows.append(f"| {name} | {cell} |")
    return "\n".join(rows)


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    sys.path.insert(0, "deploy/client")
    import django

    django.setup()
    found = holes()
    print(table())
    print(
        "\n".join(["", *found])
        if found
        else f"\nno hole: {len(ROUTES)} routes, {len(operations())} operations"
    )
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
