"""Why an experiment waits, in words: the decision of this moment."""

from dataclasses import dataclass

from django.conf import settings
from django.template.defaultfilters import pluralize
from django.utils.timesince import timesince

from training.contracts.number_text import share_text
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.placement.decision import Decision, Wait, Why, decide
from webapp.experiments.placement.pool import Demand, Place, Pool
from webapp.experiments.placement.pool_state import FOREIGN_SHARE, gpu_workers, read_pool
from webapp.lib.disk_room import shortages


@dataclass(frozen=True, slots=True)
class QueueState:
    """The pool and the decision about it; read once for a page of many."""

    pool: Pool
    decision: Decision
    num_workers: int
    """Online, also those that have not reported yet what they have."""

    @property
    def order(self) -> list[int]:
        """Waiting experiments, the next one first."""
        starting = [given.pk for given in self.decision.assignments]
        return [*starting, *self.decision.waits]


def queue_state() -> QueueState:
    """Three small queries."""
    online = gpu_workers()
    pool = read_pool(online)
    return QueueState(pool, decide(pool), len(online))


def queue_in_order(state: QueueState) -> list[Experiment]:
    """Queued experiments in the order in which they are looked at; those that were just sent come first."""
    queued = Experiment.objects.filter(status=ExperimentStatus.QUEUED).select_related("owner")
    place = {pk: number for number, pk in enumerate(state.order)}
    return sorted(queued, key=lambda one: (place.get(one.pk, -1), one.pk))


def why_waiting(experiment: Experiment, state: QueueState | None = None) -> str:
    """Why a queued experiment does not run yet."""
    if experiment.status != ExperimentStatus.QUEUED:
        return ""
    if found := shortages():
        return f"Waits for disk space: {'; '.join(map(str, found))}."
    if settings.GPU_LAUNCHER != "celery":
        return _in_cluster(experiment)
    state = state or queue_state()
    if not state.num_workers:
        return "No gpu worker is online. Start one with make up, or on a GPU host."
    if not state.pool.workers:
        return "Waits until a gpu worker has reported its GPUs."
    wait = state.decision.waits.get(experiment.pk)
    if wait is None:
        return "Starts in a moment."
    demand = next(one.demand for one in state.pool.waiting if one.pk == experiment.pk)
    return reason(demand, wait, state.pool)


def _in_cluster(experiment: Experiment) -> str:
    """What its scheduler says of its job."""
    if experiment.dispatched_at is None:
        return experiment.message or "Its job is queued in a moment."
    job = experiment.message or "Its job is queued"
    return f"{job}, since {timesince(experiment.dispatched_at)}."


def reason(demand: Demand, wait: Wait, pool: Pool) -> str:
    wanted = _wanted(demand)
    if wait.why == Why.NEVER_FITS and demand.num_hosts > 1:
        joining = {worker.host for worker in pool.workers if demand.fits(worker)}
        return (
            f"It asks for {wanted}, and {len(joining)} of the gpu hosts online could take a part. Each needs "
            "DESKHAND_TRAIN_NETWORK: the private network (a CIDR or an interface) that its ranks use."
        )
    if wait.why == Why.NEVER_FITS:
        has = f"{wait.num_suitable}, on {wait.worker}" if wait.num_suitable else "none"
        return f"No gpu worker online can ever run it: it asks for {wanted}; the most that one has is {has}."
    holders = _holders(wait.worker, pool)
    held = f" Running there: {holders}." if holders else ""
    held += _foreign(wait.worker, pool)
    if wait.why == Why.NO_WORKER_FREE:
        num = len(pool.workers)
        workers = "The gpu worker holds" if num == 1 else f"All {num} gpu workers that could run it hold"
        return f"{workers} an experiment.{held}"
    if wait.why == Why.KEPT_FOR_OTHER:
        kept = f"what is free on {wait.worker} is kept for #{wait.kept_for}, which others passed too often"
        return f"Waits for {wanted}: {kept}."
    verb = "is" if wait.num_free == 1 else "are"
    there = f"{wait.num_free} of {wait.num_suitable} {verb} free on {wait.worker}"
    gathers = " What gets free there is kept for it." if wait.gathers else ""
    return f"Waits for {wanted}: {there}.{held}{gathers}"


def _wanted(demand: Demand) -> str:
    noun = "GPU" if demand.needs_gpus else "place"
    where = "of one host" if demand.num_hosts == 1 else f"on each of {demand.num_hosts} hosts"
    text = f"{demand.num_places} {noun}{pluralize(demand.num_places)} {where}"
    if demand.kind:
        text += f", {demand.kind}"
    return f"{text}, {demand.memory_bytes / 1e9:.0f} GB each" if demand.memory_bytes else text


def _holders(worker: str, pool: Pool) -> str:
    """Experiments that hold that worker or places that it sees."""
    places = {place.key for place in _places(worker, pool)}
    found = (one.pk for one in pool.held if one.worker == worker or one.keys & places)
    return ", ".join(f"#{pk}" for pk in sorted(found))


def _foreign(worker: str, pool: Pool) -> str:
    """What other programs hold of that worker."""
    ours = {key for held in pool.held for key in held.keys}
    num = sum(place.is_foreign and place.key not in ours for place in _places(worker, pool))
    if not num:
        return ""
    share = share_text(FOREIGN_SHARE)
    return f" Other programs use more than {share} of the memory of {num} GPU{pluralize(num)} there."


def _places(worker: str, pool: Pool) -> list[Place]:
    return [place for one in pool.workers if one.name == worker for place in one.places]
