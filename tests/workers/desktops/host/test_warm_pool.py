"""The pool's decisions, without a desktop: a hand-driven clock and plain books."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from workers.desktops.contract import DesktopSpec
from workers.desktops.host.desktop_record import DesktopRecord, HeldLease
from workers.desktops.host.messages import Phase
from workers.desktops.host.warm_pool import PEAK_WINDOW_S, SLOW_RESET_S, KindState, WarmPool, wanted_free

KIND = ("x11", DesktopSpec())
SLOW = SLOW_RESET_S * 4


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_pool(clock: Clock, **options: float) -> WarmPool:
    return WarmPool(clock=clock, **options)  # type: ignore[arg-type]


def desktop(
    name: str, phase: Phase = Phase.READY, *, leased: bool = False, since: float = 0.0
) -> DesktopRecord:
    lease = HeldLease("l", "someone", 15, 0) if leased else None
    return DesktopRecord(name, *KIND, phase=phase, lease=lease, ready_since=since)


def test_wanted_free_follows_demand():
    assert wanted_free(KindState(leased=0)) == 0
    assert wanted_free(KindState(leased=4, peak=4)) == 0, "everyone has one and a reset is quick"
    assert wanted_free(KindState(leased=3, peak=4)) == 1, "one was given back: its holder comes again"
    assert wanted_free(KindState(leased=2, peak=2, waiting=3)) == 3
    assert wanted_free(KindState(leased=2, peak=2, expected=5, waiting=3)) == 5, "the waiting were expected"
    assert wanted_free(KindState(leased=4, peak=4, reset_s=SLOW)) == 1, "a spare to swap with"
    assert wanted_free(KindState(leased=9, peak=9, reset_s=SLOW)) == 3
    assert wanted_free(KindState(leased=0, peak=0, reset_s=SLOW)) == 0, "no demand, no spares"


def test_a_lost_desktop_is_replaced_before_its_holder_asks_again(clock):
    pool = make_pool(clock)
    pool.note_leases(KIND, 2)
    pool.note_leases(KIND, 1)
    desktops = [desktop("a", Phase.LEASED, leased=True)]
    assert pool.to_build(desktops, room=5) == [KIND]
    desktops.append(desktop("b", Phase.STARTING))
    assert pool.to_build(desktops, room=5) == [], "one is already booting"


def test_demand_is_forgotten_after_its_window(clock):
    pool = make_pool(clock)
    pool.note_leases(KIND, 3)
    pool.note_leases(KIND, 0)
    assert pool.wanted(KIND, 0) == 3
    clock.now += PEAK_WINDOW_S * 2
    assert pool.wanted(KIND, 0) == 0


def test_demand_that_lasts_is_not_forgotten(clock):
    pool = make_pool(clock)
    pool.note_leases(KIND, 3)
    clock.now += PEAK_WINDOW_S * 10
    assert pool.wanted(KIND, 3) == 0
    pool.note_leases(KIND, 2)
    assert pool.wanted(KIND, 2) == 1


def test_the_pool_never_builds_beyond_its_limit_or_the_hosts_room(clock):
    pool = make_pool(clock, limit=2)
    with pool.waiting(KIND), pool.waiting(KIND), pool.waiting(KIND):
        assert pool.to_build([], room=10) == [KIND, KIND]
        assert pool.to_build([], room=1) == [KIND]
        assert pool.to_build([], room=0) == []


def test_requests_know_how_many_came_before_them(clock):
    pool = make_pool(clock)
    with ExitStack() as served:
        first = served.enter_context(pool.waiting(KIND))
        with pool.waiting(KIND) as second:
            assert (first(), second()) == (0, 1)
            served.close()
            assert second() == 0


def test_queued_trajectories_count_for_kinds_that_were_used_before(clock):
    pool = make_pool(clock)
    pool.expect("x11", (512, 384), 3)
    assert pool.to_build([], room=5) == [], "nobody knows yet what exactly to build"
    pool.note_leases(KIND, 0)
    pool.expect("x11", (512, 384), 3)
    pool.expect("x11", (640, 480), 9)
    assert pool.to_build([], room=5) == [KIND] * 3
    clock.now += 60
    assert pool.to_build([], room=5) == [], "its teller has fallen silent"


def test_a_failing_build_is_tried_again_ever_more_seldom(clock):
    pool = make_pool(clock)
    with pool.waiting(KIND):
        pauses = []
        for _ in range(8):
            assert pool.to_build([], room=1) == [KIND]
            pool.note_build(KIND, "no image")
            started = clock.now
            while not pool.to_build([], room=1):
                clock.now += 0.5
            pauses.append(clock.now - started)
        assert pauses == sorted(pauses)
        assert (pauses[0], pauses[-1]) == (1.0, 60.0)
        assert pool.report([])[0].problem == "no image"
        pool.note_build(KIND, "")
        assert pool.report([])[0].problem == ""


def test_idle_desktops_are_given_up_oldest_first_but_not_what_is_wanted(clock):
    pool = make_pool(clock, idle_s=30)
    desktops = [desktop("old", since=900), desktop("older", since=800), desktop("new", since=990)]
    assert [m.desktop_id for m in pool.to_give_up(desktops)] == ["older", "old"]
    pool.note_leases(KIND, 2)
    pool.note_leases(KIND, 0)
    assert [m.desktop_id for m in pool.to_give_up(desktops)] == ["older"], "two are wanted"


def test_leased_and_quarantined_desktops_are_never_given_up(clock):
    pool = make_pool(clock, idle_s=0)
    kept = desktop("kept", Phase.QUARANTINED)
    kept.quarantine = "look at it"
    assert pool.to_give_up([kept, desktop("used", Phase.LEASED, leased=True)]) == []
    assert not kept.is_coming


def test_no_spares_are_kept_for_holders_whose_desktops_are_made_for_their_tasks(clock):
    pool = make_pool(clock)
    pool.note_leases(KIND, 4)
    pool.note_reset(KIND, SLOW)
    assert pool.wanted(KIND, 4) == 1
    pool.note_prepared(KIND)
    assert pool.wanted(KIND, 4) == 0
    clock.now += PEAK_WINDOW_S + 1
    pool.note_leases(KIND, 4)
    assert pool.wanted(KIND, 4) == 1, "nobody prepares any more"
