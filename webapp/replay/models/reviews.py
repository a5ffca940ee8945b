"""Entries that several people label without seeing each other's labels."""

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.experiments.models import TaskSet
from webapp.lib.columns.stored_fields import ReportedTextField
from webapp.replay.models.entries import ReplayEntry, Verdict


class LabelGuide(models.Model):
    """One version of what a team agreed on for a task set; shown beside the entry. Nothing changes it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="label_guides")
    task_set = models.ForeignKey(TaskSet, on_delete=models.CASCADE, related_name="label_guides")
    version = models.IntegerField()
    text = ReportedTextField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["team", "task_set", "version"], name="guide_version_once")
        ]

    def __str__(self) -> str:
        return f"guide {self.version} of {self.task_set_id}"


class ReviewRound(models.Model):
    """Entries given to people, each to `num_labels` of them."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="review_rounds")
    name = models.CharField(max_length=60)
    num_labels = models.IntegerField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class ReviewItem(models.Model):
    """One entry of a round."""

    round = models.ForeignKey(ReviewRound, on_delete=models.CASCADE, related_name="items")
    entry = models.ForeignKey(ReplayEntry, on_delete=models.CASCADE, related_name="review_items")
    expected = models.CharField(max_length=8, choices=Verdict, blank=True)
    """Of a check: the verdict that it had when the round began; "" = it is labelled for real."""
    num_open = models.IntegerField()
    """Labels that are not in yet; until 0 no one sees another's."""
    decided = models.CharField(max_length=8, choices=Verdict, blank=True)
    """What all said, or a person decided; "" = open, in disagreement, or a check."""
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    """null = all said the same."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "entry"], name="entry_once_per_round")]

    def __str__(self) -> str:
        return f"entry {self.entry_id} of review {self.round_id}"


class ReviewLabel(models.Model):
    """What one person is to say of an item, or said."""

    item = models.ForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="labels")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=8, choices=Verdict, blank=True)
    """ "" = not in yet."""
    note = ReportedTextField(blank=True)
    opened_at = models.DateTimeField(null=True)
    """When the person saw it first."""
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["item", "person"], name="one_label_per_person")]
        indexes = [models.Index(fields=["person", "verdict"], name="review_label_open")]

    def __str__(self) -> str:
        return f"label of item {self.item_id} by {self.person_id}"
