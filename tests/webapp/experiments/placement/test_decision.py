"""The placement decision: nothing is given twice, priorities hold, nothing starves, small ones fill gaps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from testing.simulated_pool import SimulatedExperiment, SimulatedPool, hosts_with_gpus
from webapp.experiments.placement.decision import MAX_PASSES, Why, decide
from webapp.experiments.placement.pool import Demand, Held, Place, Pool, PoolWorker, Waiting

HOUR = 3600.0
demands = st.builds(
    Demand,
    num_places=st.integers(1, 8),
    num_hosts=st.sampled_from([1, 1, 2, 3]),
    least_hosts=st.sampled_from([0, 0, 1]),
    needs_gpus=st.booleans(),
    kind=st.sampled_from(["", "h100", "A100"]),
    memory_bytes=st.sampled_from([0, 50]),
)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Hosts with GPUs of one or two kinds, or without, several workers each, some of it held."""
    workers = []
    for host in range(draw(st.integers(1, 4))):
        kinds = draw(st.lists(st.sampled_from(["H100", "A100", "cpu"]), max_size=8))
        places = [
            Place(
                key=f"{host}/{number}",
                kind=kind,
                memory_bytes={"H100": 80, "A100": 40, "cpu": 0}[kind],
                is_foreign=draw(st.integers(0, 9)) == 0,
            )
            for number, kind in enumerate(kinds)
        ]
        for number in range(draw(st.integers(1, 3))):
            seen = tuple(draw(st.lists(st.sampled_from(places), unique=True))) if places else ()
            joins = draw(st.booleans())
            workers.append(
                PoolWorker(name=f"{number}@{host}", places=seen, is_uncounted=not places, joins_gangs=joins)
            )
    held = []
    for pk, worker in enumerate(workers[:: draw(st.integers(1, 4))], start=1000):
        free = [place.key for place in worker.places if not any(place.key in one.keys for one in held)]
        keys = frozenset(free[: draw(st.integers(0, 8))])
        held.append(Held(pk=pk, team=draw(st.integers(1, 3)), worker=worker.name, keys=keys))
    waiting = [
        Waiting(
            pk=pk,
            team=draw(st.integers(1, 3)),
            priority=draw(st.integers(0, 2)),
            demand=draw(demands),
            num_passed=draw(st.integers(0, 2 * MAX_PASSES)),
        )
        for pk in range(draw(st.integers(0, 12)))
    ]
    return Pool(workers=workers, held=held, waiting=waiting)


@given(pools())
@settings(max_examples=50)
def test_nothing_is_given_twice_and_what_is_given_suits(pool: Pool) -> None:
    decision = decide(pool)
    assert {one.pk for one in pool.waiting} == {one.pk for one in decision.assignments} | set(decision.waits)
    shares = [(one.pk, share) for one in decision.assignments for share in one.shares]
    keys = Counter(key for _, share in shares for key in share.keys)
    workers = Counter(share.worker for _, share in shares)
    for held in pool.held:
        keys.update(held.keys)
        workers[held.worker] += 1
    assert max(keys.values(), default=1) == 1
    assert max(workers.values(), default=1) == 1
    by_name = {worker.name: worker for worker in pool.workers}
    demand_of = {one.pk: one.demand for one in pool.waiting}
    for given_now in decision.assignments:
        demand = demand_of[given_now.pk]
        hosts = {by_name[share.worker].host for share in given_now.shares}
        assert demand.fewest_hosts <= len(hosts) == len(given_now.shares) <= demand.num_hosts
        kinds = {
            place.kind
            for share in given_now.shares
            for place in by_name[share.worker].places
            if place.key in share.keys
        }
        assert len(kinds) <= 1
    for pk, found in shares:
        worker, demand = by_name[found.worker], demand_of[pk]
        assert worker.joins_gangs or demand.num_hosts == 1
        places = [place for place in worker.places if place.key in found.keys]
        if worker.is_uncounted:
            assert not demand.needs_gpus
            continue
        assert len(places) == len(found.keys) == demand.num_places
        assert len({place.kind for place in places}) == 1
        assert not any(place.is_foreign for place in places)
        assert any(
            {place.key for place in places} <= {p.key for p in some} for some in demand.places_of(worker)
        )


@given(pools())
@settings(max_examples=50)
def test_a_lower_priority_takes_only_what_a_higher_one_cannot_use_now(pool: Pool) -> None:
    """What waits would not have fitted either before anything lower was placed."""
    decision = decide(pool)
    rows = {one.pk: one for one in pool.waiting}
    for pk in decision.waits:
        above = [row for row in pool.waiting if row.priority > rows[pk].priority]
        if any(one.num_passed >= MAX_PASSES for one in [*above, *pool.waiting]):
            continue  # what those gather is kept from others
        first = [
            Held(pk=one.pk, team=0, worker=share.worker, keys=frozenset(share.keys))
            for one in decision.assignments
            for share in one.shares
            if rows[one.pk].priority >= rows[pk].priority
        ]
        alone = Pool(workers=pool.workers, held=[*pool.held, *first], waiting=[rows[pk]])
        assert not decide(alone).assignments


@given(st.lists(st.integers(1, 4), min_size=3, max_size=8), st.integers(5, 8), st.integers(1, 3))
@settings(max_examples=5)
def test_a_large_one_starts_although_small_ones_never_cease(small: list[int], large: int, team: int) -> None:
    """A stream of small experiments that could fill the pool for ever, of any team."""
    stream = [
        SimulatedExperiment(
            pk=10 + number,
            submit_s=number * HOUR / 6,
            takes_s=HOUR * (1 + number % 3),
            num_gpus=small[number % len(small)],
            team=1 + number % 2,
        )
        for number in range(120)
    ]
    waits = SimulatedExperiment(pk=1, submit_s=HOUR, takes_s=HOUR, num_gpus=large, team=team)
    # One of its own team runs all along: by its share alone it would come last for ever.
    long = SimulatedExperiment(pk=2, takes_s=1000 * HOUR, num_gpus=8, team=team)
    pool = SimulatedPool(hosts_with_gpus(2, 8, 4))
    pool.run([long, waits, *stream], until_s=20 * HOUR)
    assert 1 in pool.started_at
    assert pool.started_at[1] <= 15 * HOUR


@given(st.lists(st.integers(1, 4), min_size=3, max_size=8), st.integers(5, 8), st.integers(2, 3))
@settings(max_examples=5)
def test_one_over_several_hosts_starts_although_small_ones_never_cease(
    small: list[int], large: int, num_hosts: int
) -> None:
    stream = [
        SimulatedExperiment(
            pk=10 + number,
            submit_s=number * HOUR / 8,
            takes_s=HOUR * (1 + number % 3),
            num_gpus=small[number % len(small)],
        )
        for number in range(240)
    ]
    gangs = [
        SimulatedExperiment(pk=pk, submit_s=pk * HOUR, takes_s=HOUR, num_gpus=large, num_hosts=num_hosts)
        for pk in (1, 2)
    ]
    pool = SimulatedPool(hosts_with_gpus(3, 8, 4))
    pool.run([*gangs, *stream], until_s=30 * HOUR)
    assert set(pool.started_at) >= {1, 2}
    assert max(pool.started_at[1], pool.started_at[2]) <= 25 * HOUR


def test_two_two_and_four_share_a_host() -> None:
    waiting = [Waiting(pk=pk, demand=Demand(num_places=size)) for pk, size in ((1, 2), (2, 2), (3, 4))]
    given_to = decide(Pool(workers=hosts_with_gpus(1, 8, 3), waiting=waiting)).assignments
    assert [len(one.keys) for one in given_to] == [2, 2, 4]
    assert len({key for one in given_to for key in one.keys}) == 8


def test_an_experiment_over_two_hosts_gets_both_or_none() -> None:
    gang = Waiting(pk=1, demand=Demand(num_places=3, num_hosts=2))
    workers = hosts_with_gpus(3, 4, 2)
    held = [Held(pk=9, team=1, worker="gpu0@host1", keys=frozenset({"host1/0", "host1/1"}))]
    (found,) = decide(Pool(workers=workers, held=held, waiting=[gang])).assignments
    assert {share.worker.partition("@")[2] for share in found.shares} == {"host0", "host2"}
    assert [len(share.keys) for share in found.shares] == [3, 3]

    held += [Held(pk=8, team=1, worker="gpu0@host0", keys=frozenset({"host0/0", "host0/1"}))]
    decision = decide(Pool(workers=workers, held=held, waiting=[gang]))
    assert not decision.assignments
    assert decision.waits[1].why == Why.TOO_FEW_FREE
    fewer = replace(gang, demand=replace(gang.demand, least_hosts=1))
    (found,) = decide(Pool(workers=workers, held=held, waiting=[fewer])).assignments
    assert [share.worker for share in found.shares] == ["gpu0@host2"]
    alone = [replace(worker, joins_gangs=worker.host == "host0") for worker in workers]
    assert decide(Pool(workers=alone, waiting=[gang])).waits[1].why == Why.NEVER_FITS


def test_an_overdue_one_gathers_places_of_all_its_hosts() -> None:
    overdue = Waiting(pk=1, demand=Demand(num_places=4, num_hosts=2), num_passed=MAX_PASSES)
    held = [Held(pk=9, team=1, worker="gpu0@host0", keys=frozenset({"host0/0"}))]
    small = Waiting(pk=2)
    decision = decide(Pool(workers=hosts_with_gpus(2, 4, 2), held=held, waiting=[small, overdue]))
    assert not decision.assignments
    assert decision.waits[1].gathers
    assert decision.waits[2].kept_for == 1


def test_whom_places_are_kept_for_is_said_of_those_alone_that_come_later() -> None:
    """All but the overdue one have the same demand, whose reason is looked up once while nothing is kept."""
    held = [Held(pk=9, team=1, worker="gpu0@host0", keys=frozenset({"host0/0"}))]
    urgent, late = (
        Waiting(pk=pk, priority=priority, demand=Demand(num_places=4)) for pk, priority in ((1, 1), (3, 0))
    )
    overdue = Waiting(pk=2, demand=Demand(num_places=4, kind="h100"), num_passed=MAX_PASSES)
    pool = Pool(workers=hosts_with_gpus(1, 4, 2), held=held, waiting=[urgent, overdue, late])
    assert {pk: wait.kept_for for pk, wait in decide(pool).waits.items()} == {1: None, 2: None, 3: 2}


def test_a_worker_is_kept_also_from_one_that_wants_other_gpus_of_it() -> None:
    """A worker runs one experiment: with the small one on it the overdue one would wait for that, too."""
    places = tuple(Place(key=f"h/{kind}/{n}", kind=kind) for kind in ("H100", "A100") for n in range(2))
    workers = [PoolWorker(name=f"gpu{number}@h", places=places) for number in range(2)]
    held = [Held(pk=9, team=1, worker="gpu0@h", keys=frozenset({"h/H100/0"}))]
    overdue = Waiting(pk=1, demand=Demand(num_places=2, kind="h100"), num_passed=MAX_PASSES)
    small = Waiting(pk=2, demand=Demand(kind="a100"))
    assert not decide(Pool(workers=workers, held=held, waiting=[overdue, small])).assignments
    assert decide(Pool(workers=workers, held=held, waiting=[small])).assignments


def test_small_ones_fill_the_fuller_host() -> None:
    workers = hosts_with_gpus(2, 8, 2)
    held = [Held(pk=9, team=1, worker="gpu0@host1", keys=frozenset(f"host1/{n}" for n in range(5)))]
    (found,) = decide(Pool(workers=workers, held=held, waiting=[Waiting(pk=1)])).assignments
    assert found.worker == "gpu1@host1"


def test_one_that_ran_goes_on_where_its_checkpoints_lie_if_it_can() -> None:
    workers = hosts_with_gpus(2, 4, 1)
    (found,) = decide(Pool(workers=workers, waiting=[Waiting(pk=1, home="host1")])).assignments
    assert found.worker == "gpu0@host1"
    held = [Held(pk=9, team=1, worker="gpu0@host1")]
    (found,) = decide(Pool(workers=workers, held=held, waiting=[Waiting(pk=1, home="host1")])).assignments
    assert found.worker == "gpu0@host0"


def test_the_team_with_fewer_gpus_goes_first_within_a_priority() -> None:
    held = [Held(pk=9, team=1, worker="gpu0@host0", keys=frozenset({"host0/0", "host0/1"}))]
    waiting = [Waiting(pk=pk, team=team, demand=Demand(num_places=2)) for pk, team in ((1, 1), (2, 2))]
    pool = Pool(workers=hosts_with_gpus(1, 4, 2), held=held, waiting=waiting)
    assert [one.pk for one in decide(pool).assignments] == [2]
    urgent = Waiting(pk=3, team=1, priority=1, demand=Demand(num_places=2))
    pool = Pool(workers=pool.workers, held=held, waiting=[*waiting, urgent])
    assert [one.pk for one in decide(pool).assignments] == [3]


def test_reasons_are_true() -> None:
    held = [Held(pk=9, team=1, worker="gpu0@host0", keys=frozenset({"host0/0", "host0/1"}))]
    workers = hosts_with_gpus(1, 4, 2)

    def why(size: int, **values: int) -> tuple[Why, int, int, bool]:
        one = Waiting(pk=1, demand=Demand(num_places=size), **values)
        wait = decide(Pool(workers=workers, held=held, waiting=[one])).waits[1]
        return wait.why, wait.num_free, wait.num_suitable, wait.gathers

    assert why(3) == (Why.TOO_FEW_FREE, 2, 4, False)
    assert why(3, num_passed=MAX_PASSES) == (Why.TOO_FEW_FREE, 2, 4, True)
    assert why(5) == (Why.NEVER_FITS, 0, 4, False)
    overdue = Waiting(pk=1, demand=Demand(num_places=3), num_passed=MAX_PASSES)
    pool = Pool(workers=workers, held=held, waiting=[Waiting(pk=2), overdue])
    assert decide(pool).waits[2].kept_for == 1
    assert decide(Pool(workers=[], waiting=[overdue])).waits[1].why == Why.NO_WORKER
    alone = Pool(workers=workers[:1], held=held, waiting=[Waiting(pk=2)])
    assert decide(alone).waits[2].why == Why.NO_WORKER_FREE


def test_gpus_of_other_programs_and_hosts_without_gpus_are_left_alone() -> None:
    foreign = PoolWorker(name="a", places=(Place(key="a/0", kind="H100", is_foreign=True),))
    counted = PoolWorker(name="b", places=(Place(key="b/cpu0"), Place(key="b/cpu1")))
    uncounted = PoolWorker(name="c", is_uncounted=True)
    needs = Waiting(pk=1, demand=Demand(needs_gpus=True))
    any_host = [Waiting(pk=pk, demand=Demand(num_places=2)) for pk in (2, 3)]
    decision = decide(Pool(workers=[foreign, counted, uncounted], waiting=[needs, *any_host]))
    assert {one.pk: one.worker for one in decision.assignments} == {2: "b", 3: "c"}
    assert decision.waits[1].why == Why.TOO_FEW_FREE
