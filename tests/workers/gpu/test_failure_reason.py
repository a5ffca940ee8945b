"""What people read first about a trainer that ended, from logs as its launcher leaves them."""

import pytest

from workers.gpu.failure_reason import how_it_ended, waited_for_hosts, why_trainer_ended

KILLED = "rank 1 of the trainer was ended by SIGKILL\n"
CRASHED = "rank 1 of the trainer was ended by SIGSEGV\n"
STEP = "2026-11-21 19:33:58,385 training.loop.run_stages step 8: reward 0.693\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            STEP + KILLED,
            "rank 1 of the trainer was ended by SIGKILL: by hand, or because",
        ),
        (STEP + CRASHED, "rank 1 of the trainer was ended by SIGSEGV"),
        (
            "Traceback (most recent call last):\n  raise ValueError(text)\nValueError: no such task\n",
            "the trainer ended with code 1: ValueError: no such task",
        ),
        (
            "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\n",
            "the trainer ended with code 1: torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB",
        ),
        (
            STEP + "=====\n",
            "the trainer ended with code 1: 2026-11-21 19:33:58,385 training.loop.run_stages step 8",
        ),
        (
            "[rank1]: training.distributed.world.GangIncomplete: not all ranks met at b:7\n",
            "not all ranks met at b:7",
        ),
        ("", "the trainer ended with code 1: no output"),
        (
            STEP + "[rank0]: Traceback (most recent call last):\n[rank0]:     retu",
            "the trainer ended with code 1; its log breaks off in a traceback, as on a full disk",
        ),
    ],
)
def test_the_reason_is_the_line_that_says_most(log: str, words: str) -> None:
    assert why_trainer_ended(1, log).startswith(words)


def test_ranks_that_waited_for_hosts_are_told_from_those_that_lost_one() -> None:
    incomplete = "training.distributed.world.GangIncomplete: not all ranks met at b:7 within 0:02:00\n"
    assert waited_for_hosts(incomplete)
    assert why_trainer_ended(1, incomplete) == "not all ranks met at b:7 within 0:02:00"
    assert not waited_for_hosts("RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:936\n")


def test_a_killed_rank_is_told_and_not_what_its_peers_say_of_it() -> None:
    peer = "[rank0]: RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:936\n"
    for log in (STEP + peer + KILLED, STEP + KILLED + peer):
        assert why_trainer_ended(137, log).startswith("rank 1 of the trainer was ended by SIGKILL: by hand")
    aborted = "ValueError: no such task\nrank 0 of the trainer was ended by SIGABRT\n"
    assert why_trainer_ended(134, aborted) == "the trainer ended with code 134: ValueError: no such task"


def test_a_child_that_was_killed_is_told_by_the_signal() -> None:
    """Its log knows nothing of its end, and "code -9" tells few people anything."""
    assert why_trainer_ended(-9, "ValueError: of an hour ago").startswith(
        "the trainer was ended by SIGKILL, by"
    )
    assert how_it_ended(-15) == "was ended by SIGTERM"
    assert how_it_ended(3) == "ended with code 3"
