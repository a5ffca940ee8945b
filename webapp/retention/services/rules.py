"""Changes of a team's retention rules, each with its row in the audit log."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import Experiment
from webapp.retention.models import RetentionRule

Limits = dict[str, int | None]


@transaction.atomic
def set_rule(
    *, team: Team, experiment: Experiment | None, limits: Limits, by: AbstractBaseUser
) -> RetentionRule:
    """Make the rule for these experiments, or change the one that there is. `limits`: columns of the rule."""
    known = RetentionRule.objects.filter(team=team, experiment=experiment).first()
    before = _limits_of(known) if known else None
    rule, _ = RetentionRule.objects.update_or_create(team=team, experiment=experiment, defaults=limits)
    if before != _limits_of(rule):
        _record(AuditAction.RULE_CHANGED, rule, by, before=before, after=_limits_of(rule))
    return rule


@transaction.atomic
def delete_rule(*, rule: RetentionRule, by: AbstractBaseUser) -> None:
    """Without a rule everything stays."""
    _record(AuditAction.RULE_DELETED, rule, by, before=_limits_of(rule))
    rule.delete()


def _limits_of(rule: RetentionRule) -> Limits:
    return {"max_age_days": rule.max_age_days, "max_bytes": rule.max_bytes}


def _record(action: AuditAction, rule: RetentionRule, by: AbstractBaseUser, **detail: object) -> None:
    """The experiment is the object; without one the rule is for all others of the team."""
    kind, pk = ("experiment", rule.experiment_id) if rule.experiment_id else ("team", rule.team_id)
    log_action(action, person=by, team=rule.team_id, kind=kind, object_id=pk, **detail)
