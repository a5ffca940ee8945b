"""What people read first about a trainer that ended, from logs as torchrun leaves them."""

import pytest

from workers.gpu.failure_reason import why_trainer_ended

SUMMARY = """\
E1121 19:34:27.778000 9478 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code})
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=====================================================
training.loop.train FAILED
-----------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
-----------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_19:34:27
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 9658){signal}
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
=====================================================
"""
KILLED = SUMMARY.format(code=-9, signal="  (SIGKILL)")
FAILED = SUMMARY.format(code=1, signal="")
STEP = "2026-11-21 19:33:58,385 training.loop.stages step 8: reward 0.693\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            STEP + KILLED,
            "rank 1 of the trainer was ended by SIGKILL: by hand, or because",
        ),
        (STEP + SUMMARY.format(code=-11, signal="  (SIGSEGV)"), "rank 1 of the trainer was ended by SIGSEGV"),
        (
            "Traceback (most recent call last):\n  raise ValueError(text)\nValueError: no such task\n"
            + FAILED,
            "the trainer ended with code 1: ValueError: no such task",
        ),
        (
            "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\n" + FAILED,
            "the trainer ended with code 1: torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB",
        ),
        (
            STEP + "=====\n",
            "the trainer ended with code 1: 2026-11-21 19:33:58,385 training.loop.stages step 8",
        ),
        ("", "the trainer ended with code 1: no output"),
    ],
)
def test_the_reason_is_the_line_that_says_most(log: str, words: str) -> None:
    assert why_trainer_ended(1, log).startswith(words)
