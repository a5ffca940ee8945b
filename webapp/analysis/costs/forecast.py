"""What an experiment, or all of a sweep, will cost: for the pre-flight panel."""

from dataclasses import dataclass

from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.analysis.costs.cost_rows import money_text
from webapp.analysis.costs.ledger import Cost
from webapp.experiments.queries.prices import prices_of
from webapp.fleet.models import Worker, WorkerStatus


@dataclass(frozen=True, slots=True)
class CostForecast:
    """Of hours only: how many tokens a policy will write is not known before."""

    gpu_hours: float | None
    """At most; None while no gpu worker is online, which could say what it has."""
    desktop_hours: float
    """At most: all desktops from the first second to the last of the longest that it can take."""
    text: str
    """At most, of both at the team's prices; "" without."""


def cost_forecast(config: ExperimentConfig, at_most_s: float, team: Team) -> CostForecast:
    """From the seconds that all experiments together take at most."""
    hours = at_most_s / 3600
    num_gpus = _num_gpus(config)
    gpu_hours = None if num_gpus is None else num_gpus * hours
    desktop_hours = config.desktops.num_desktops * hours
    prices = prices_of(team)
    cost = Cost(prices=prices, gpu_hours=gpu_hours, desktop_hours=desktop_hours)
    return CostForecast(gpu_hours, desktop_hours, money_text(prices, cost.money) or "")


def _num_gpus(config: ExperimentConfig) -> int | None:
    """GPUs that it will hold where it runs; 0 where the workers have none."""
    online = Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE).values_list("gpus", flat=True)
    most = [len(gpus or ()) for gpus in online]
    return min(max(most) * config.optimiser.num_hosts, config.num_gpus) if most else None
