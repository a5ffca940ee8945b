"""What a team pays for hours and tokens."""

from django.db import models

from webapp.accounts.models import Team

MAX_PRICE = 1e6
MAX_CURRENCY = 8


class TeamPrices(models.Model):
    """Prices of a team; 0 = not counted."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="prices")
    currency = models.CharField(max_length=MAX_CURRENCY, default="USD")
    gpu_hour = models.FloatField(default=0)
    desktop_hour = models.FloatField(default=0)
    million_prompt_tokens = models.FloatField(default=0)
    million_completion_tokens = models.FloatField(default=0)

    def __str__(self) -> str:
        return f"prices of {self.team_id}"

    @property
    def is_set(self) -> bool:
        """False while nothing has a price."""
        return any(getattr(self, name) for name in PRICE_FIELDS)


PRICE_FIELDS = {
    "gpu_hour": "GPU-hour",
    "desktop_hour": "Desktop-hour",
    "million_prompt_tokens": "Million prompt tokens",
    "million_completion_tokens": "Million generated tokens",
}
"""Column -> its name for people."""
