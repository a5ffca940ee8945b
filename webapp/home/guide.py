"""The first run, step by step: what a person has done of it, and where the next step is done."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Exists
from django.urls import reverse

from webapp.accounts.models import AuditAction, AuditEntry, Team
from webapp.experiments.models import ACTIVE_STATUSES, Experiment
from webapp.replay.models import LabelEvent


@dataclass(frozen=True, slots=True)
class Step:
    """One of the first run."""

    title: str
    text: str
    is_done: bool
    url: str = ""
    """Where it is done; "" while it cannot be."""
    action: str = ""


@dataclass(frozen=True, slots=True)
class Guide:
    """All steps, and the recorded sample."""

    steps: list[Step]
    sample: Experiment | None

    @property
    def next_step(self) -> Step | None:
        return next((step for step in self.steps if not step.is_done), None)

    @property
    def num_done(self) -> int:
        return sum(step.is_done for step in self.steps)


def guide_of(team: Team, person: User, *, may_launch: bool) -> Guide:
    """Of this person in this team; runs and the sample are the team's."""
    watched = AuditEntry.objects.filter(person=person, action=AuditAction.WATCHED, team=team)
    labelled = LabelEvent.objects.filter(by=person, entry__team=team)
    asked = Team.objects.filter(pk=team.pk).annotate(watched=Exists(watched), labelled=Exists(labelled))
    row = asked.values("watched", "labelled").get()
    runs = Experiment.objects.filter(team=team, is_sample=False).order_by("-pk")
    run = runs.only("pk", "status", "ended_at").first()
    is_active = run is not None and run.status in ACTIVE_STATUSES
    page = reverse("experiment-detail", args=[run.pk]) if run else ""
    launch = f"{reverse('experiment-launch')}?preset=first-desk" if may_launch else ""
    steps = [
        Step(
            "Launch First desk.",
            "A tiny model learns to use small desktops in about ten minutes; nothing has to be set up.",
            run is not None,
            launch,
            "Launch it",
        ),
        Step(
            "Watch it.",
            "Every desktop of the run is live. Hold the next desktop there, and take it over with c.",
            row["watched"],
            f"{page}?tab=desktops" if is_active else "",
            "See its desktops",
        ),
        Step(
            "Read the verdict.",
            "It stands on top of the run: what came of it, since when, and what to change.",
            run is not None and run.ended_at is not None,
            page,
            "Open the run",
        ),
        Step(
            "Label what it did.",
            "Good trajectories of the replay inbox train the next run.",
            row["labelled"],
            reverse("replay-inbox"),
            "Open the inbox",
        ),
    ]
    return Guide(steps, Experiment.objects.filter(team=team, is_sample=True).order_by("pk").first())
