"""A sweep in plain values, for the API and the command line."""

from typing import Any

from webapp.analysis.evaluations.stamps import measured_otherwise
from webapp.experiments.models import Sweep
from webapp.sweeps.queries.results import best_of, measured_by, results_of


def summary_of(sweep: Sweep) -> dict[str, Any]:
    """Status, plan, and every arm with its experiments, mean and interval."""
    results = results_of(sweep)
    best = best_of(results, sweep.plan)
    return {
        "id": sweep.pk,
        "name": sweep.name,
        "preset": sweep.preset,
        "status": sweep.status,
        "message": sweep.message,
        "plan": sweep.plan.model_dump(mode="json"),
        "num_experiments": sweep.plan.num_experiments,
        "best_arm": best.result.arm.number if best else None,
        "best_arms": [one.arm.number for one in best.all] if best else [],
        "measured_otherwise": measured_otherwise(measured_by(results, sweep.plan)),
        "arms": [
            {
                "number": one.arm.number,
                "status": one.arm.status,
                "values": one.arm.values,
                "message": one.arm.message,
                "mean": one.mean,
                "start": one.start,
                "interval": one.interval,
                "binomial": one.binomial,
                "num_samples": one.num_samples,
                "num_finished": len(one.seed_values),
                "experiments": [experiment.pk for experiment in one.experiments],
            }
            for one in results
        ],
        "created_at": sweep.created_at,
        "ended_at": sweep.ended_at,
    }
