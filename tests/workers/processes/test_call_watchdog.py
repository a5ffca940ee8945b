"""Calls without a limit of their own are cut, all of them by one thread."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from workers.processes.call_watchdog import LOOK_S, CallLimits


def test_a_call_that_takes_too_long_is_cut_and_others_go_on() -> None:
    limits = CallLimits()
    ours, theirs = socket.socketpair()
    in_time = threading.Event()
    with ours, theirs, limits.cut_after(60, in_time.set):
        with limits.cut_after(0.01, lambda: ours.shutdown(socket.SHUT_RDWR)):
            assert ours.recv(1) == b"", "cut: nothing was ever sent"
        assert not in_time.is_set()


def test_a_call_that_failed_is_not_cut_later() -> None:
    limits, was_cut = CallLimits(), threading.Event()
    with pytest.raises(ZeroDivisionError), limits.cut_after(0.01, was_cut.set):
        raise ZeroDivisionError
    assert not was_cut.wait(3 * LOOK_S)


def test_one_thread_looks_after_many_calls() -> None:
    limits, before = CallLimits(), threading.active_count()
    for _ in range(50):
        with limits.cut_after(60, pytest.fail):
            assert threading.active_count() == before + 1


def test_a_forked_process_looks_after_its_own_calls() -> None:
    limits = CallLimits()
    with limits.cut_after(60, pytest.fail):
        pass
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        was_cut = threading.Event()
        with limits.cut_after(0.01, was_cut.set):
            os.write(writing, b"y" if was_cut.wait(30) else b"n")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 1) == b"y"
    os.close(reading)
    os.close(writing)
