"""One row of everything that a web route can name, the people around it, and the list of all routes."""

from dataclasses import dataclass
from types import CellType

from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_frame, make_replay_entry, make_team, make_user
from testing.fleet_rows import make_desktop, make_host, make_joined_host, make_worker
from webapp.accounts.models import SavedView
from webapp.attacks.models import Exploit
from webapp.experiments.models import Sweep
from webapp.experiments.sweep_plan import SweepPlan
from webapp.notifications.models import Delivery, NotificationRule
from webapp.notifications.screenshot_strip_links import token_of as picture_token_of
from webapp.replay.models import AdmissionPolicy, ReplayImport, ReviewRound
from webapp.reports.frozen_content import Choices
from webapp.reports.services.links import make_link, token_of
from webapp.reports.services.reports import write_version
from webapp.retention.models import RetentionRule
from webapp.scanners.models import Scan, Scanner
from webapp.screens.models import Control


@dataclass
class World:
    """The owner's things, and the people."""

    paths: dict[str, str]
    users: dict[str, User]


def all_routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> list[str]:
    """Names of all routes; Django's admin has its own rule and test."""
    found = []
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            namespace = f"{pattern.namespace}:" if pattern.namespace else ""
            if pattern.namespace != "admin":
                found += all_routes(pattern.url_patterns, prefix + namespace)
        elif (operations := _api_operations(pattern)) is not None:
            found += [f"{prefix}{name}" for name in operations]
        else:
            found.append(f"{prefix}{pattern.name or pattern.pattern}")
    return found


def _api_operations(pattern: URLPattern) -> list[str] | None:
    """One API path has an operation per method; None for other routes."""
    view = pattern.callback
    while view is not None:  # what is wrapped around the view of a path has no operations itself
        cells: tuple[CellType, ...] = getattr(view, "__closure__", None) or ()
        for holder in (getattr(view, "__self__", None), *(cell.cell_contents for cell in cells)):
            if hasattr(holder, "operations"):
                return [operation.operation_id for operation in holder.operations]
        view = getattr(view, "__wrapped__", None)
    return None


def make_world() -> World:
    team = make_team()
    owner = make_user("admin", team=team)
    users = {
        "owner": owner,
        "operator": make_user("operator", team=team),
        "annotator": make_user("annotator", team=team),
        "teammate": make_user("viewer", team=team),
        "stranger": make_user("admin"),
    }
    entry = make_replay_entry(team=team, turns=2)
    control = Control.objects.create(
        trajectory=entry.trajectory, user=owner, status="held", expires_at=timezone.now()
    )
    experiment = make_experiment(team=team, owner=owner, status="queued")
    sweep = Sweep.objects.create(
        team=team,
        name="sweep",
        config=experiment.config,
        plan_values=SweepPlan(num_seeds=2).model_dump(mode="json"),
    )
    checkpoint = experiment.checkpoints.create(step=1, policy_version=1, path="/nowhere/checkpoint")
    report = write_version(team=team, user=owner, title="report", text="", choices=Choices([experiment.pk]))
    link = make_link(version=report, user=owner, days=7)
    scanner = Scanner.objects.create(team=team, name="own", version=1, definition={"kind": "still"})
    rule = NotificationRule.objects.create(team=team, channel="browser", kinds=["failed"])
    delivery = Delivery.objects.create(
        team=team, rule=rule, kind="test", key="test", title="A test", path="/", status="failed",
        frames=[make_frame(team, 0)],
    )  # fmt: skip
    paths = {
        "notification_rule": rule.pk,
        "delivery": delivery.pk,
        "picture": picture_token_of(delivery),
        "report": report.report_id,
        "link": link.pk,
        "token": token_of(link),
        "control": control.pk,
        "checkpoint": checkpoint.pk,
        "export": checkpoint.exports.create(dtype="float32").pk,
        "view": SavedView.objects.create(team=team, page="replay", name="of the team").pk,
        "team": team.pk,
        "member": users["teammate"].memberships.get().pk,
        "experiment": experiment.pk,
        "sweep": sweep.pk,
        "rule": RetentionRule.objects.create(team=team, max_age_days=30).pk,
        "evaluation": make_evaluation(experiment).pk,
        "task": entry.trajectory.task_id,
        "task_set": entry.trajectory.task.task_set.name,
        "trajectory": entry.trajectory_id,
        "group": entry.trajectory.group_id,
        "entry": entry.pk,
        "import": ReplayImport.objects.create(team=team, file_name="x.jsonl", size_bytes=1).pk,
        "review": ReviewRound.objects.create(team=team, name="review", num_labels=2).pk,
        "policy": AdmissionPolicy.objects.create(team=team, name="all", version=1, rules={}).pk,
        "scanner": str(scanner),
        "scan": Scan.objects.create(team=team, scanner=scanner, slice="buffer", max_read=1).pk,
        "exploit": Exploit.objects.create(
            team=team,
            task=entry.trajectory.task,
            name="says that it is done",
            script={},
            digest="x",
            score=1.0,
        ).pk,
        "desktop": make_desktop().name,
        "worker": make_worker().pk,
        "host": make_host().pk,
        "joined": make_joined_host().pk,
        "frame": make_frame(team, 0),
    }
    return World({key: str(value) for key, value in paths.items()}, users)
