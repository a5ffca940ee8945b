"""Guidelines for labels, per task set, in versions."""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Max

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue, check_text
from webapp.replay.models import LabelGuide

MAX_TEXT = 20_000


def guide_of(team_id: int, task_set_id: int) -> LabelGuide | None:
    """The newest version; None when the team wrote none, or emptied it."""
    found = LabelGuide.objects.filter(team_id=team_id, task_set_id=task_set_id).first()
    return found if found is not None and found.text else None


def save_guide(*, team: Team, user: User, task_set: str, text: str) -> LabelGuide:
    """The next version for the task set of that name. Raises BadValue."""
    check_text(text, "text")
    if len(text) > MAX_TEXT:
        raise BadValue("text", f"at most {MAX_TEXT} characters, this has {len(text)}")
    found = TaskSet.objects.filter(name=task_set).first()
    if found is None:
        raise BadValue("task_set", "choose the task set that the guidelines are for")
    mine = LabelGuide.objects.filter(team=team, task_set=found)
    try:
        with transaction.atomic():
            saved = LabelGuide.objects.create(
                team=team,
                task_set=found,
                version=(mine.aggregate(last=Max("version"))["last"] or 0) + 1,
                text=text.strip(),
                owner=user,
            )
    except IntegrityError as error:
        raise BadValue("text", "another person saved a version just now; look at it first") from error
    log_action(AuditAction.SAVED, person=user, team=team, kind="guidelines", object_id=found.name)
    return saved
