"""docs/results.md is current, covers every result, and hides no bar that was missed."""

from benchmarks.results_page.claim import read
from benchmarks.results_page.page import PAGE, claims, page, result_files


def test_the_page_is_what_the_results_give():
    assert PAGE.read_text() == page(), "run .venv/bin/python -m benchmarks.results_page"


def test_every_result_has_one_claim():
    assert sorted(claim.result for claim in claims()) == result_files()


def test_a_missed_bar_is_told_in_plain_words_and_a_met_one_is_not():
    for claim in claims():
        assert bool(claim.missed) is not read(claim.result)["passed"], claim.result
        assert all(len(words.split()) <= 30 for words in claim.missed)
