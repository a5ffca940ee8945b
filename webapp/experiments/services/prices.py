"""Changes of a team's prices, with their row in the audit log: every cost is shown at the new ones."""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import TeamPrices
from webapp.experiments.queries.prices import prices_of


@transaction.atomic
def set_prices(*, team: Team, values: dict[str, float | str], by: AbstractBaseUser) -> None:
    """Store them; `values`: columns of `TeamPrices`."""
    stored = prices_of(team)
    before = {name: getattr(stored, name) for name in values if getattr(stored, name) != values[name]}
    TeamPrices.objects.update_or_create(team=team, defaults=values)
    if before:
        after = {name: values[name] for name in before}
        log_action(
            AuditAction.PRICES_CHANGED,
            person=by,
            team=team,
            kind="team",
            object_id=team.pk,
            before=before,
            after=after,
        )
