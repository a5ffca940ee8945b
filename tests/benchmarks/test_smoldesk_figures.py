"""What the benchmark of real weights makes of its evaluations: pass@k without bias, and the bar by seed."""

import pytest

from benchmarks.gpu.smoldesk_figures import looks_of, missed, pass_at, passes_at, table


def evaluation(step: int, temperature: float, **solved: int) -> tuple:
    """Two tasks of each family with eight draws each, of which this number is solved."""
    results = {
        f"smoldesk/{family}/{number:04d}": (won, 8, 1, 0)
        for family, won in solved.items()
        for number in (0, 1)
    }
    return ("before" if not step else "after", step, temperature, results)


def runs(**after: int) -> dict:
    """A demonstrated start that solves one draw in eight of each family, and what became of it."""
    before = dict.fromkeys(after, 1)
    rows = [evaluation(step, heat, **(after if step else before)) for step in (0, 40) for heat in (0.0, 1.0)]
    same = [evaluation(step, heat, **before) for step in (0, 40) for heat in (0.0, 1.0)]
    return {
        "demonstrated/grpo/seed 0": {"looks": looks_of(rows)},
        "demonstrated/shuffled/seed 0": {"looks": looks_of(same)},
    }


def test_pass_at_k_is_the_share_of_draws_of_k_that_hold_a_success():
    assert pass_at(1, [(2, 8), (0, 8)]) == pytest.approx(1 / 8)
    assert pass_at(8, [(1, 8), (0, 8)]) == pytest.approx(1 / 2)
    # Of the 28 pairs of eight draws 15 have none of the two successes.
    assert pass_at(2, [(2, 8)]) == pytest.approx(13 / 28)
    assert pass_at(64, [(1, 8)]) is None


def test_solved_at_the_limit_is_not_solved():
    rows = [("before", 0, 1.0, {"smoldesk/form/0000": (5, 8, 1, 5)})]
    (look,) = looks_of(rows)
    assert look["families"]["form"]["solved"] == 0
    assert look["by_task"] == {"smoldesk/form/0000": [0, 8]}


def test_pass_at_k_of_a_step_is_of_its_sampled_evaluation():
    looks = looks_of([evaluation(0, 0.0, form=8), evaluation(0, 1.0, form=1), evaluation(40, 1.0, form=8)])
    assert passes_at(looks, 0) == {"form": {"pass@1": pytest.approx(1 / 8), "pass@8": 1.0}}
    assert passes_at(looks, 20) == {}


def test_the_bar_names_the_family_that_learned_too_little_and_sharpening():
    assert missed(runs(form=8, rename=8, mixed=1), ["demonstrated"], [0]) == [
        "demonstrated/grpo/seed 0: mixed greedy +0%, bar +15%",
        "demonstrated/grpo/seed 0: mixed sampled +0%, bar +15%",
        "demonstrated/grpo/seed 0: pass@8 rises by +0% at most: sharpening alone",
    ]
    assert missed({}, ["uninformative"], [3]) == ["uninformative/grpo/seed 3: not evaluated at both ends"]


def test_the_table_has_a_row_for_every_run_and_family():
    header, rows = table(runs(form=8, rename=8, mixed=8))
    assert len(rows) == 6
    assert all(len(row) == len(header) for row in rows)
    assert rows[0][:2] == ("demonstrated/grpo/seed 0", "form")
