"""A team's prices."""

from webapp.accounts.models import Team
from webapp.experiments.models import TeamPrices


def prices_of(team: Team) -> TeamPrices:
    """The team's prices; all 0 before anyone has set them."""
    return TeamPrices.objects.filter(team=team).first() or TeamPrices(team=team)
