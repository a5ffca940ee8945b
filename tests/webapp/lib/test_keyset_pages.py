"""Keyset pages: every row once, forwards and backwards, whatever ties and gaps there are."""

import pytest
from django.core.exceptions import BadRequest
from django.http import QueryDict

from testing.factories import make_group, make_trajectory
from webapp.lib import keyset_pages
from webapp.lib.keyset_pages import paginate
from webapp.trajectories.models import Trajectory

SORTS = {"newest": "-id", "oldest": "id", "best": "-reward", "worst": "reward", "ended": "-ended_at"}


@pytest.fixture
def rewards(db):
    """Eleven trajectories: ties, and three without a reward."""
    group = make_group()
    values = [1.0, 0.5, None, 0.5, 0.0, 1.0, None, 0.5, 0.25, None, 1.0]
    for value in values:
        make_trajectory(group=group, turns=0, reward=value)
    return values


def walk(sort: str, *, page_size: int = 3) -> tuple[list[list[int]], list[list[int]]]:
    """(pages going forwards, pages going back again from the last one)"""
    forwards, backwards, link = [], [], f"?sort={sort}"
    while link:
        page = paginate(
            Trajectory.objects.all(), QueryDict(link[1:]), sorts=SORTS, default="newest", page_size=page_size
        )
        forwards.append([row.pk for row in page.rows])
        link, back = page.older, page.newer
    while back:
        page = paginate(
            Trajectory.objects.all(), QueryDict(back[1:]), sorts=SORTS, default="newest", page_size=page_size
        )
        backwards.append([row.pk for row in page.rows])
        back = page.newer
    return forwards, backwards


@pytest.mark.parametrize("sort", SORTS)
def test_every_row_comes_once_and_the_way_back_is_the_same(rewards, sort):
    forwards, backwards = walk(sort)
    flat = [pk for page in forwards for pk in page]
    assert len(flat) == len(set(flat)) == len(rewards)
    assert backwards == forwards[-2::-1]


def test_rows_without_a_value_come_last_in_both_directions(rewards):
    for sort, sign in (("best", -1), ("worst", 1)):
        pages, _ = walk(sort)
        found = [Trajectory.objects.get(pk=pk).reward for page in pages for pk in page]
        numbers = [value for value in rewards if value is not None]
        assert found == sorted(numbers, key=lambda value: sign * value) + [None] * 3


def test_filters_stay_in_the_links_and_the_count_is_capped(rewards, monkeypatch):
    rows = Trajectory.objects.filter(reward=0.5)
    query = QueryDict("family=menu&tag=a&tag=b")
    page = paginate(rows, query, sorts=SORTS, default="best", noun="trajectories", page_size=2)
    assert page.count_text == "3 trajectories"
    assert page.older.startswith("?family=menu&tag=a&tag=b&after=")
    assert page.newer == ""
    monkeypatch.setattr(keyset_pages, "COUNT_CAP", 2)
    assert keyset_pages.count_text(rows) == "2+ rows"


@pytest.mark.parametrize("cursor", ["x", "W10", "WzEsMiwzXQ", "WyJhIiwxXQ"])
def test_a_cursor_that_is_none_is_refused(rewards, cursor):
    with pytest.raises(BadRequest, match="not a place in this list"):
        paginate(
            Trajectory.objects.all(), QueryDict(f"sort=best&after={cursor}"), sorts=SORTS, default="newest"
        )
