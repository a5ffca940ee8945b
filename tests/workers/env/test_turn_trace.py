"""Where a turn's time goes: parts add up to the wall time, and what the server measured is its own."""

from __future__ import annotations

from training.contracts.turn_trace import TurnPart
from workers.env.turn_trace import TurnTrace


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_parts_add_up_and_what_others_measured_is_taken_out_of_the_call():
    clock = Clock()
    trace = TurnTrace(clock)
    clock.seconds += 0.010
    trace.lap(TurnPart.REPORT)
    clock.seconds += 0.100
    trace.lap(TurnPart.TRANSFER, inside={TurnPart.QUEUE: 30.0, TurnPart.DECODE: 50.0})
    clock.seconds += 0.005
    trace.lap(TurnPart.REPORT)
    spent = trace.take()
    assert spent == {TurnPart.REPORT: 15, TurnPart.QUEUE: 30, TurnPart.DECODE: 50, TurnPart.TRANSFER: 20}
    assert trace.take() == {}, "the next turn begins at nothing"


def test_a_repeated_answer_that_took_longer_than_the_call_leaves_no_negative_part():
    clock = Clock()
    trace = TurnTrace(clock)
    clock.seconds += 0.010
    trace.lap(TurnPart.TRANSFER, inside={TurnPart.DECODE: 50.0})
    assert trace.take() == {TurnPart.DECODE: 50}


def test_the_time_of_a_person_at_the_desktop_is_in_no_turn():
    clock = Clock()
    trace = TurnTrace(clock)
    clock.seconds += 60
    trace.skip()
    clock.seconds += 0.020
    trace.lap(TurnPart.ACT)
    assert trace.take() == {TurnPart.ACT: 20}
