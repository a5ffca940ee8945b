"""The four places of the product and their pages: what the sidebar shows and Ctrl+K goes to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """A page with a name of its own in its place."""

    title: str
    route: str
    key: str
    """Pressed after `g`."""
    below: tuple[str, ...]
    """How addresses begin that belong to it."""
    for_admins: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """One of the four; its first page is the one that it opens."""

    title: str
    icon: str
    pages: tuple[Page, ...]


PLACES = (
    Place(
        "Runs",
        "experiments",
        (
            Page("Experiments", "experiment-list", "e", ("/experiments/", "/sweeps/")),
            Page("Queue", "queue-show", "q", ("/queue/",)),
            Page("Reports", "report-list", "p", ("/reports/",)),
        ),
    ),
    Place(
        "Data",
        "trajectories",
        (
            Page("Trajectories", "trajectory-list", "t", ("/trajectories/", "/groups/", "/demonstrate/")),
            Page("Replay inbox", "replay-inbox", "r", ("/replay/",)),
            Page("Entries", "replay-list", "i", ("/replay/list/",)),
            Page("Clusters", "replay-clusters", "c", ("/replay/clusters/",)),
            Page("Coverage", "replay-stats", "b", ("/replay/stats/",)),
            Page("Policies", "replay-policies", "o", ("/replay/policies/",)),
            Page("Reviews", "replay-reviews", "v", ("/replay/reviews/", "/replay/guides/")),
            Page("Export and import", "replay-transfer", "x", ("/replay/transfer/", "/replay/imports/")),
            Page("Scanners", "scanner-list", "s", ("/scanners/", "/scans/")),
        ),
    ),
    Place(
        "Tasks",
        "tasks",
        (
            Page("Task sets", "task-sets", "k", ("/tasks/", "/task-editor/", "/task-upload/", "/new-task/")),
            Page("Reward lab", "reward-lab", "w", ("/rewards/",)),
        ),
    ),
    Place(
        "Settings",
        "settings",
        (
            Page("Fleet", "fleet-show", "f", ("/fleet/",)),
            Page("Members", "team-show", "m", ("/team/",)),
            Page("Notifications", "notification-list", "n", ("/notifications/",)),
            Page("Storage", "storage-show", "d", ("/storage/",)),
            Page("Prices", "prices", "y", ("/experiments/prices/",)),
            Page("Audit log", "audit-list", "a", ("/audit/",), for_admins=True),
            Page("Profile", "profile-show", "u", ("/profile/",)),
        ),
    ),
)


def current_page(path: str) -> Page | None:
    """The page that an address belongs to, by its longest beginning; None outside all places."""
    starts = {start: page for place in PLACES for page in place.pages for start in page.below}
    return starts.get(max((start for start in starts if path.startswith(start)), key=len, default=""))
