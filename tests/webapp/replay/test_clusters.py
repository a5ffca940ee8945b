"""Near-identical entries come together, the best of each cluster stay, the buffer has many orders."""

import pytest

from testing.factories import (
    make_experiment,
    make_frame,
    make_group,
    make_replay_entry,
    make_task,
    make_trajectory,
    make_turn,
)
from testing.first_desk_screens import menu_screen
from webapp.replay.curation.clusters import surplus_of
from webapp.replay.likeness import alike, difference_hash, differences, differing_bits
from webapp.replay.models import ReplayEntry
from webapp.replay.services.clusters import compare_waiting
from webapp.replay.services.labels import undo_latest
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.frames import store_frame

pytestmark = pytest.mark.django_db


def make_entry(team, task, clicks, *, frames=None, reward=1.0, **values):
    """An entry that clicked at `clicks`, and then ended."""
    group = make_group(team=team, task=task)
    trajectory = make_trajectory(group=group, turns=0, reward=reward)
    for index, (x, y) in enumerate(clicks):
        frame = frames[index] if frames else make_frame(team, index)
        make_turn(trajectory, index, frame=frame, action={"kind": "click", "x": x, "y": y})
    make_turn(trajectory, len(clicks), is_last=True)
    trajectory.num_turns = len(clicks) + 1
    trajectory.save()
    return make_replay_entry(trajectory=trajectory, **values)


def compare():
    assert sum(compare_waiting()) == ReplayEntry.objects.count()


def clusters():
    return dict(ReplayEntry.objects.values_list("pk", "cluster"))


def test_the_same_clicks_a_few_pixels_apart_are_one_cluster(team):
    task = make_task()
    first = make_entry(team, task, [(100, 100), (200, 50)])
    near = make_entry(team, task, [(119, 95), (190, 60)])
    far = make_entry(team, task, [(100, 100), (200, 90)])
    of_another_task = make_entry(team, make_task(), [(100, 100), (200, 50)])
    compare()
    assert clusters() == {
        first.pk: first.pk,
        near.pk: first.pk,
        far.pk: far.pk,
        of_another_task.pk: of_another_task.pk,
    }


def test_the_same_clicks_on_other_screens_are_apart(team):
    task = make_task()
    menu = store_frame(team, menu_screen(1))
    plain = make_frame(team, 3)
    first = make_entry(team, task, [(10, 10)], frames=[menu])
    same = make_entry(team, task, [(12, 10)], frames=[menu])
    other = make_entry(team, task, [(10, 10)], frames=[plain])
    compare()
    assert [clusters()[entry.pk] == first.pk for entry in (first, same, other)] == [True, True, False]


def test_a_cluster_outlives_its_founder(team):
    task = make_task()
    founder, member = (make_entry(team, task, [(10, 10)]) for _ in range(2))
    compare()
    cluster = founder.pk
    founder.delete()
    late = make_entry(team, task, [(11, 11)])
    assert sum(compare_waiting()) == 1
    assert clusters() == {member.pk: cluster, late.pk: cluster}


def test_hashes_are_near_for_near_screens_and_far_for_others(team):
    hashes = [
        difference_hash(read_frame(store_frame(team, png), "thumb.jpg"))
        for png in (menu_screen(0), menu_screen(0, chosen="x"))
    ]
    assert differing_bits(*(f"{value:x}" for value in hashes)) <= 6
    assert differing_bits("ff", "0") == 8


@pytest.mark.parametrize(("length", "changed", "found"), [(7, 1, False), (8, 1, True), (15, 2, False)])
def test_one_step_in_eight_may_differ(length, changed, found):
    one = [["click", 40 * place, 0, ""] for place in range(length)]
    other = [["key", None, None, "Return"]] * changed + one[changed:]
    assert alike(one, other, "", "") is found


def test_a_step_that_is_left_out_counts_once():
    one = [["click", 40 * place, 0, ""] for place in range(9)]
    assert differences(one, one[:4] + one[5:], 3) == 1


def test_the_best_of_each_cluster_stay_and_one_undo_takes_it_back(web, team, anna):
    task = make_task()
    worst, gold, accepted, best = (
        make_entry(team, task, [(10, 10)], reward=reward, verdict=verdict)
        for reward, verdict in [(0.6, "inbox"), (0.7, "gold"), (0.8, "accepted"), (1.0, "inbox")]
    )
    alone = make_entry(team, make_task(), [(1, 1)])
    compare()
    page = web.get("/replay/clusters/?keep=2")
    assert page.context["found"].num_surplus == 2
    assert [cluster.num for cluster in page.context["found"].clusters] == [4]
    answer = web.post("/replay/clusters/keep/?keep=2", {"keep": "2"}, follow=True)
    assert "2 entries rejected" in answer.content.decode()
    rejected = ReplayEntry.objects.filter(verdict="rejected")
    assert {(entry.pk, tuple(entry.tags)) for entry in rejected} == {
        (worst.pk, ("near-duplicate",)),
        (best.pk, ("near-duplicate",)),
    }
    assert web.get("/replay/clusters/?keep=2").context["found"].num_surplus == 0

    undo_latest(team=team, user=anna)
    found = {entry.pk: entry for entry in ReplayEntry.objects.all()}
    assert [found[entry.pk].verdict for entry in (worst, gold, accepted, best, alone)] == [
        "inbox", "gold", "accepted", "inbox", "inbox",
    ]  # fmt: skip
    assert not any(entry.tags for entry in found.values())


def test_gold_is_never_surplus_and_a_filter_bounds_the_change(web, team):
    task = make_task()
    golds = [make_entry(team, task, [(10, 10)], verdict="gold") for _ in range(3)]
    low = make_entry(team, task, [(10, 10)], reward=0.5)
    compare()
    assert surplus_of(ReplayEntry.objects.all(), 1) == [low.pk]
    web.post("/replay/clusters/keep/?verdict=gold", {"keep": "1", "cluster": str(golds[0].pk)})
    assert not ReplayEntry.objects.filter(verdict="rejected").exists()


@pytest.mark.parametrize("keep", ["0", "101", "x", ""])
def test_a_wrong_number_to_keep_is_refused_by_name(web, keep):
    answer = web.post("/replay/clusters/keep/", {"keep": keep})
    assert (answer.status_code, b"keep" in answer.content) == (400, True)


# --- the list ----------------------------------------------------------------------------------------


def listed(web, query=""):
    return [row["entry"].pk for row in web.get(f"/replay/list/{query}").context["rows"]]


@pytest.fixture
def buffer(team):
    """Entry 0: a rare task that fails now; 1 and 2: a common one that is solved."""
    experiment = make_experiment(team=team)
    rare, common = make_task(), make_task()
    entries = [
        make_entry(team, task, [(10 * place, 10)] * turns, reward=reward, verdict="accepted")
        for place, (task, turns, reward) in enumerate([(rare, 5, 0.7), (common, 1, 1.0), (common, 3, 0.9)])
    ]
    for task, score in [(rare, 0.0), (rare, 0.0), (common, 1.0)]:
        group = make_group(team=team, experiment=experiment, task=task)
        make_trajectory(group=group, reward=score)
    return entries


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("newest", [2, 1, 0]),
        ("rarity", [0, 2, 1]),
        ("failing", [0, 2, 1]),
        ("shortest", [1, 2, 0]),
        ("longest", [0, 2, 1]),
        ("best", [1, 2, 0]),
        ("worst", [0, 2, 1]),
    ],
)
def test_the_list_and_the_queue_have_the_same_orders(web, buffer, sort, order):
    wanted = [buffer[place].pk for place in order]
    assert listed(web, f"?sort={sort}") == wanted
    queue = web.get(f"/replay/?verdict=accepted&sort={sort}").context["queue"]
    assert [entry.pk for entry in queue] == wanted
    rest = web.get(f"/replay/entries/?verdict=accepted&sort={sort}&before={wanted[0]}").json()["rows"]
    assert [f'data-entry="{pk}"' in rest for pk in wanted] == [False, True, True]


def test_the_oldest_policy_comes_first_and_unknown_ages_last(web, team):
    experiment = make_experiment(team=team, policy_version=9)
    ages = [(experiment, 8), (experiment, 2), (None, 1)]
    entries = []
    for of, version in ages:
        group = make_group(team=team, experiment=of)
        entries.append(make_replay_entry(trajectory=make_trajectory(group=group, policy_version=version)))
    assert listed(web, "?sort=stale") == [entries[1].pk, entries[0].pk, entries[2].pk]


def test_filters_find_entries_by_what_is_wrong_with_them_and_by_whom(web, team, anna):
    plain = make_replay_entry(team=team, tags=["clean"], labelled_by=anna, verdict="gold")
    still = make_replay_entry(team=team, num_still=4)
    unparsed = make_replay_entry(team=team)
    Trajectory.objects.filter(pk=unparsed.trajectory_id).update(num_parse_errors=2, reward=0.6)
    ReplayEntry.objects.filter(pk=unparsed.pk).update(has_bad_turns=True)  # such entries come last
    for query, wanted in [
        ("problem=still", [still]),
        ("problem=unparsed", [unparsed]),
        ("annotator=anna", [plain]),
        ("tag=clean", [plain]),
        ("max_reward=0.7", [unparsed]),
        ("min_reward=0.7", [still, plain]),
        ("source=human", []),
        ("source=martian&min_reward=x&sort=x&cluster=x", [still, plain, unparsed]),
    ]:
        assert listed(web, f"?{query}") == [entry.pk for entry in wanted], query


def test_pages_ask_few_questions_however_long_the_buffer(web, team, buffer, django_assert_max_num_queries):
    compare()
    for path in ("/replay/list/?sort=failing", "/replay/clusters/", "/replay/?sort=rarity&verdict=all"):
        with django_assert_max_num_queries(13):
            assert web.get(path).status_code == 200


def test_a_page_behind_the_last_one_is_the_last_one(web, buffer):
    assert listed(web, "?page=99999") == listed(web) != []
