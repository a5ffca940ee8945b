"""A cost as rows of text for its table."""

from dataclasses import dataclass

from webapp.analysis.costs.ledger import Cost
from webapp.experiments.models import TeamPrices

OLD = "A part of it is of an older version, which did not record it"


@dataclass(frozen=True, slots=True)
class CostRow:
    """One quantity: in all, per solved task, per accepted entry."""

    label: str
    values: tuple[str | None, ...]
    """None = not recorded, "" = there is nothing to share it over."""
    help: str
    why_unknown: str = OLD


def cost_rows(cost: Cost) -> list[CostRow]:
    shares = (cost, cost.per_solved, cost.per_accepted)

    def row(label: str, name: str, help_text: str) -> CostRow:
        values = tuple("" if one is None else _number(getattr(one, name)) for one in shares)
        return CostRow(label, values, help_text)

    rows = [
        row("GPU-hours", "gpu_hours", "Time of attempts × GPUs that they held, busy or not"),
        row("Desktop-hours", "desktop_hours", "From a trajectory's claim to its end, errored ones too"),
        row("Prompt tokens", "prompt_tokens", "Of every turn with its whole context"),
        row("Generated tokens", "completion_tokens", "Sampled by the policy"),
        row("Worker-hours", "worker_hours", "Time of attempts, whatever they ran on"),
    ]
    if cost.prices.is_set:
        values = tuple("" if one is None else money_text(cost.prices, one.money) for one in shares)
        rows.append(
            CostRow("Sum", values, "At the team's prices", "A part that has a price was not recorded")
        )
    return rows


def money_text(prices: TeamPrices, money: float | None) -> str | None:
    """ "12.40 USD"; smaller sums with three digits that count."""
    if money is None:
        return None
    return f"{money:,.2f} {prices.currency}" if money >= 1 else f"{money:.3g} {prices.currency}"


def _number(value: float | int | None) -> str | None:
    if value is None:
        return None
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1e3:
        return f"{value:,.0f}"
    return f"{value:.3g}"
