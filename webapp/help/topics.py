"""Where a question of a page is answered: topic -> page and heading of the built site."""

from training.contracts.config import ExperimentConfig

SECTION_PREFIX = "settings."
TOPICS = {
    **{f"{SECTION_PREFIX}{name}": f"docs/settings/#{name}" for name in ExperimentConfig.model_fields},
    "front": "docs/",
    "roles": "docs/using/#roles",
    "launch": "docs/using/#launch",
    "pre-flight": "docs/using/#pre-flight",
    "presets": "docs/presets/",
    "sweeps": "docs/using/#seeds-and-sweeps",
    "experiments": "docs/using/#experiments",
    "queue": "docs/using/#queue",
    "alarms": "docs/using/#alarms",
    "evaluations": "docs/using/#evaluations",
    "compare": "docs/using/#compare",
    "trajectories": "docs/using/#trajectories",
    "desktops": "docs/using/#live-desktops",
    "replay": "docs/using/#replay",
    "reviews": "docs/using/#reviews",
    "transfer": "docs/using/#export-and-import",
    "scanners": "docs/using/#scanners",
    "reports": "docs/using/#reports",
    "task-sets": "docs/tasks/#task-sets",
    "task-editor": "docs/tasks/#setup-verbs",
    "task-by-doing": "docs/tasks/#made-by-doing",
    "rewards": "docs/tasks/#rewards",
    "fleet": "docs/using/#fleet",
    "add-a-host": "docs/hosts/#hosts-join",
    "team": "docs/using/#team",
    "two-step": "docs/running/#two-step-sign-in",
    "audit": "docs/using/#audit",
    "storage": "docs/running/#what-goes-and-when",
    "disk": "docs/running/#before-a-disk-is-full",
    "notifications": "docs/operations/#notifications",
    "prices": "docs/using/#prices",
}
"""Every page names its question by a key of this table."""
PAGES = {
    "home": "front",
    **dict.fromkeys(("experiment-list", "experiment-detail", "experiments-delete"), "experiments"),
    "experiment-compare": "compare",
    **dict.fromkeys(("evaluation-matrix", "success-by-domain", "task-side-by-side"), "evaluations"),
    **dict.fromkeys(
        ("trajectory-list", "trajectory-detail", "trajectory-tree", "group-detail"), "trajectories"
    ),
    **dict.fromkeys(("desktop-show", "demonstration-start", "fleet-desktop"), "desktops"),
    **dict.fromkeys(("replay-inbox", "replay-list", "replay-clusters", "replay-policies"), "replay"),
    **dict.fromkeys(("replay-detail", "replay-stats", "turn-labels"), "replay"),
    **dict.fromkeys(("replay-reviews", "replay-review", "replay-guides"), "reviews"),
    **dict.fromkeys(("replay-transfer", "replay-import"), "transfer"),
    **dict.fromkeys(("scanner-list", "scanner-new", "scanner-detail", "scan-detail"), "scanners"),
    **dict.fromkeys(("report-list", "report-new", "report-detail", "report-version"), "reports"),
    **dict.fromkeys(("task-sets", "task-set", "task-show", "task-upload"), "task-sets"),
    "experiment-launch": "launch",
    "sweep-detail": "sweeps",
    "queue-show": "queue",
    "alarm-show": "alarms",
    "task-editor": "task-editor",
    "task-new": "task-by-doing",
    "reward-lab": "rewards",
    "fleet-show": "fleet",
    "host-add": "add-a-host",
    "team-show": "team",
    "profile-show": "two-step",
    "two-step-show": "two-step",
    "audit-list": "audit",
    "storage-show": "storage",
    "notification-list": "notifications",
    "prices": "prices",
}
"""Route of a page -> its topic, for the link beside its heading and in its empty states."""


def topic_of_setting(path: str) -> str:
    """The topic of a setting (`optimiser.learning_rate`); "" for what is no part of a config."""
    topic = f"{SECTION_PREFIX}{path.partition('.')[0]}"
    return topic if topic in TOPICS else ""
