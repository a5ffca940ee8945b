"""Scans as long work: claims, live ones, cancelling, facets, admission rules, and agreement with people."""

import random
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_team,
    make_trajectory,
    make_turn,
    make_user,
)
from training.statistics.agreement import cohens_kappa, kappa_interval
from webapp.accounts.models import Role
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import Experiment
from webapp.lib.long_work import MAX_LOST, SILENT
from webapp.lib.request_values import BadValue
from webapp.replay.models import ProcessLabel, ReplayEntry, Verdict
from webapp.replay.queries.rules import Rules, admit
from webapp.replay.queries.sorting import Surroundings
from webapp.replay.services.process_labels import mark_first_wrong, rate_turn
from webapp.scanners.agreement import with_marks, with_verdicts
from webapp.scanners.models import Finding, Scan
from webapp.scanners.queries.scanners import get_known, known_scanners
from webapp.scanners.services.scanners import save_scanner
from webapp.scanners.services.scans import cancel_scan, next_scan, start_scan

pytestmark = pytest.mark.django_db(transaction=True)
LOOPS = "loops.v1"
CLICK = {"kind": "click", "x": 10, "y": 10}


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def user(team):
    return make_user(Role.OPERATOR, team=team)


def run_of(experiment: Experiment, *, loops: bool):
    """A scored trajectory of three turns."""
    row = make_trajectory(group=make_group(experiment=experiment), turns=0, reward=1.0, num_turns=3)
    for index in range(3):
        make_turn(row, index, action=CLICK if loops else CLICK | {"x": 100 * index})
    return row


def started(team, user, key=LOOPS, slice_key="buffer-all", *, is_live=False, max_read=1000) -> Scan:
    known = get_known(team, key)
    return start_scan(
        team=team, user=user, known=known, slice_key=slice_key, is_live=is_live, max_read=max_read
    )


def scanned(team, user, **more) -> Scan:
    scan = started(team, user, **more)
    kinds["scan"].run(scan.pk)
    scan.refresh_from_db()
    return scan


@pytest.mark.parametrize("path", ["/scanners/", f"/scanners/{LOOPS}/"])
def test_lists_name_what_a_scan_reads_as_people_do(client, team, user, path):
    experiment = make_experiment(team=team, name="lamp")
    run_of(experiment, loops=True)
    started(team, user, slice_key=f"train-{experiment.pk}")
    client.force_login(user)
    assert f"<td>#{experiment.pk} lamp: training</td>" in client.get(path).content.decode()


def test_a_live_scan_follows_its_experiment_to_its_end(team, user):
    experiment = make_experiment(team=team, status="running")
    run_of(experiment, loops=True)
    scan = scanned(team, user, slice_key=f"train-{experiment.pk}", is_live=True)
    assert (scan.status, scan.num_read, scan.num_found) == ("watching", 1, 1)
    long_ago = timezone.now() - timedelta(minutes=1)
    Scan.objects.update(looked_at=long_ago)
    assert next_scan() is None
    assert next_scan() is None
    later = run_of(experiment, loops=False)
    make_trajectory(group=later.group, status="running", turns=1)
    assert next_scan() is None, "it looked a moment ago"
    Scan.objects.update(looked_at=long_ago)
    assert next_scan() == scan.pk
    kinds["scan"].run(scan.pk)
    scan.refresh_from_db()
    assert (scan.status, scan.num_read, scan.num_found) == ("watching", 2, 1)
    Experiment.objects.update(status="finished", ended_at=timezone.now())
    Scan.objects.update(looked_at=long_ago)
    assert next_scan() == scan.pk
    kinds["scan"].run(scan.pk)
    scan.refresh_from_db()
    assert scan.status == "finished"
    with pytest.raises(BadValue, match="choose an experiment to follow"):
        started(team, user, slice_key="buffer-all", is_live=True)


@pytest.mark.parametrize("pattern", ["Return", r"\{\"action\":\"key\""])
def test_completions_that_are_json_are_read_as_they_were_written(team, user, pattern):
    experiment = make_experiment(team=team)
    row = run_of(experiment, loops=False)
    turn = row.turns.get(index=1)
    turn.completion["text"] = '{"action":"key","keys":["Return"]}'
    turn.save()
    scanner = save_scanner(
        team=team, user=user, name="keys", definition={"kind": "text", "pattern": pattern}, note=""
    )
    scan = scanned(team, user, key=str(scanner), slice_key=f"train-{experiment.pk}")
    assert (scan.status, scan.num_read, scan.num_found) == ("finished", 1, 1)
    assert Finding.objects.get().turn == 1


def test_another_process_goes_on_where_one_died_and_the_late_one_stores_nothing(team, user, monkeypatch):
    experiment = make_experiment(team=team)
    for _ in range(3):
        run_of(experiment, loops=True)
    scan = started(team, user, slice_key=f"train-{experiment.pk}")
    monkeypatch.setattr("webapp.scanners.kinds.contract.Kind.batch", 1)
    stops = iter([False, True])
    kinds["scan"].run(scan.pk, lambda: next(stops))
    assert Finding.objects.count() == 2
    assert next_scan() == scan.pk, "released at once"
    late = Scan.take(scan.pk)
    assert Scan.take(scan.pk) is None, "one process holds it"
    Scan.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    kinds["scan"].run(scan.pk)
    scan.refresh_from_db()
    assert (scan.status, scan.num_read, scan.num_lost) == ("finished", 3, 1)
    assert late.claim < scan.claim

    again = started(team, user, slice_key="buffer-all")
    Scan.objects.filter(pk=again.pk).update(
        status="scanning", num_lost=MAX_LOST - 1, heartbeat_at=timezone.now() - timedelta(hours=1)
    )
    kinds["scan"].run(again.pk)
    again.refresh_from_db()
    assert (again.status, again.message) == ("failed", f"{SILENT} 3 processes died.")


def test_nothing_is_read_after_a_cancellation(team, user, monkeypatch):
    experiment = make_experiment(team=team)
    run_of(experiment, loops=True)
    run_of(experiment, loops=True)
    scan = started(team, user, slice_key=f"train-{experiment.pk}")
    with pytest.raises(BadValue, match="is reading it already"):
        started(team, user, slice_key=f"train-{experiment.pk}")
    monkeypatch.setattr("webapp.scanners.kinds.contract.Kind.batch", 1)
    kinds["scan"].run(scan.pk, lambda: not cancel_scan(scan=scan, user=scan.owner))
    scan.refresh_from_db()
    assert (scan.status, scan.num_read, Finding.objects.count()) == ("cancelled", 1, 1)
    assert not cancel_scan(scan=scan, user=scan.owner)


def test_findings_are_facets_of_lists_and_rules_of_the_buffer(team, user):
    experiment = make_experiment(team=team)
    looping, other = run_of(experiment, loops=True), run_of(experiment, loops=False)
    entries = {
        row.pk: make_replay_entry(trajectory=row, verdict=Verdict.ACCEPTED) for row in (looping, other)
    }
    unread = make_replay_entry(team=team, verdict=Verdict.ACCEPTED, turns=1)
    scanned(team, user, slice_key=f"train-{experiment.pk}")
    scanner = Finding.objects.first().scanner
    client = Client()
    client.force_login(user)
    page = client.get(f"/trajectories/?finding={scanner.pk}").content.decode()
    assert f"/trajectories/{looping.pk}/" in page
    assert f"/trajectories/{other.pk}/" not in page
    page = client.get(f"/replay/list/?verdict=all&finding={scanner.pk}").content.decode()
    assert f"/replay/{entries[looping.pk].pk}/" in page
    assert f"/replay/{entries[other.pk].pk}/" not in page
    assert LOOPS in client.get(f"/trajectories/{looping.pk}/").content.decode()
    found = client.get(f"/api/v1/trajectories?finding={scanner.pk}").json()["items"]
    assert [row["id"] for row in found] == [looping.pk]

    admitted = admit(team, Rules(without=(LOOPS,)), Surroundings(team.pk))
    assert {facts.pk for facts in admitted.entering} == {entries[other.pk].pk, unread.pk}
    assert admitted.left_out == {f"found by {LOOPS}": 1}
    assert Rules(without=(LOOPS,)).words() == f"nothing found by {LOOPS}"
    with pytest.raises(BadValue, match="names no scanner"):
        Rules.read({"without": ["x' or 1"]})
    page = client.get(f"/replay/policies/?without={LOOPS}").content.decode()
    assert f"Found by {LOOPS}" in page


def test_agreement_with_verdicts_and_marks(team, user):
    experiment = make_experiment(team=team)
    person = make_user(Role.ANNOTATOR, team=team)
    rows = [run_of(experiment, loops=loops) for loops in (True, True, False, False, True)]
    for row, verdict in zip(rows, ("rejected", "accepted", "gold", "rejected", "rejected"), strict=True):
        entry = make_replay_entry(trajectory=row, verdict=verdict)
        ReplayEntry.objects.filter(pk=entry.pk).update(labelled_by=person)
    ReplayEntry.objects.filter(trajectory=rows[4]).update(labelled_by=None)
    mark_first_wrong(trajectory=rows[0], user=person, index=0)
    rate_turn(trajectory=rows[1], user=person, index=1, rating=-1)
    rate_turn(trajectory=rows[2], user=person, index=1, rating=1)
    ProcessLabel.objects.create(trajectory=rows[3], by=person, origin="program", ratings={"0": -1})
    ProcessLabel.objects.create(trajectory=rows[4], by=person, ratings={})
    scanned(team, user, slice_key=f"train-{experiment.pk}")
    scanner = Finding.objects.first().scanner_id
    verdicts = with_verdicts([scanner])[scanner]
    assert (verdicts.num, verdicts.num_equal, verdicts.num_both, verdicts.kappa) == (4, 2, 1, 0.0)
    assert verdicts.interval[0] < 0 < verdicts.interval[1]
    marks = with_marks(scanner)
    assert (marks.agreed.num, marks.agreed.num_equal, marks.agreed.kappa) == (3, 3, 1.0)
    assert (marks.num_placed, marks.num_same_turn) == (2, 1)
    client = Client()
    client.force_login(user)
    page = client.get(f"/scanners/{LOOPS}/").content.decode()
    assert "1 of 2 findings name a turn that people marked bad." in page


def test_the_interval_of_kappa_covers_the_truth_95_times_in_100():
    dice = random.Random(5)
    error = 0.06
    truth = (1 - 2 * error) ** 2  # of two people who say what a coin says, and err so often

    def said(coin: bool) -> str:
        return "yes" if coin ^ (dice.random() < error) else "no"

    covered = 0
    for _ in range(400):
        coins = [dice.random() < 0.5 for _ in range(150)]
        low, high = kappa_interval([(said(coin), said(coin)) for coin in coins])
        covered += low <= truth <= high
    assert 0.91 <= covered / 400 <= 0.985
    assert kappa_interval([("a", "a"), ("b", "b")]) is None
    assert kappa_interval([]) is None


def test_the_interval_is_that_of_a_published_table():
    """Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions (2003), table 18.1: two people
    and 100 patients; kappa 0.676, standard error 0.088."""
    table = {"pp": 75, "pn": 1, "po": 4, "np": 5, "nn": 4, "no": 1, "oo": 10}
    pairs = [(both[0], both[1]) for both, num in table.items() for _ in range(num)]
    assert cohens_kappa(pairs) == pytest.approx(0.676, abs=5e-4)
    low, high = kappa_interval(pairs)
    assert (high - low) / 2 / 1.96 == pytest.approx(0.088, abs=1e-3)


def test_saved_scanners_are_versions_of_their_team(team, user):
    definition = {"kind": "text", "pattern": "lucky"}
    for expected in ("luck.v1", "luck.v2"):
        row = save_scanner(team=team, user=user, name="luck", definition=definition, note="by chance")
        assert str(row) == expected
    assert str(save_scanner(team=team, user=user, name="loops", definition=definition, note="")) == "loops.v2"
    assert [one.key for one in known_scanners(team)][-3:] == ["loops.v2", "luck.v2", "luck.v1"]
    assert get_known(make_team(), "luck.v1") is None
    for name in ("Luck", "", "a.v1", "../x"):
        with pytest.raises(BadValue, match="name"):
            save_scanner(team=team, user=user, name=name, definition=definition, note="")
    with pytest.raises(BadValue, match="dance"):
        save_scanner(team=team, user=user, name="x", definition={"kind": "dance"}, note="")
