"""An env host without database: it joins, runs an episode over the door, and what it reports arrives once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import httpx
import pytest
from django.utils import timezone
from PIL import Image

from testing.factories import make_team, make_user
from tests.workers.env.test_branch_episodes import machine, oracle_task  # noqa: F401 (fixture)
from training.contracts.observed_text import Marks
from training.contracts.types import Observation, Purpose, Source
from webapp.fleet.models import JoinedHost, Worker
from webapp.lib.host_links.joined_identity import JoinedIdentity
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Frame, Trajectory
from webapp.trajectories.row_to_types import turn_of
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.trajectories.services.texts import read_text
from webapp.trajectories.services.trajectories import lose_stale_trajectories
from webapp.worker_door import assignments, host_mirror, trajectories, workers
from webapp.worker_door.job_tickets import make_ticket
from webapp.worker_door.joined_hosts import batches, joining, receive
from webapp.worker_door.joined_hosts.contract_version import version
from webapp.worker_door.trajectories import open_turn
from workers import identity, worker_row
from workers.desktops.desktop_texts import DesktopTexts, ReadText
from workers.desktops.frame import Frame as Picture
from workers.env import trajectory_job
from workers.env.running_trajectories import all_held, held
from workers.joined import spooled_reports
from workers.joined.spooled_reports import Spool, SpooledFrame, SpooledReports
from workers.reports.contract import CallRefused, ServerAway
from workers.reports.current import reports, use_reports

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def host(settings, live_server, tmp_path, machine) -> Iterator[SimpleNamespace]:  # noqa: F811
    """This process is the env host `far` of the installation that the live server is."""
    user = make_user("admin")
    token = joining.make_token(user=user, roles=["env"], team=None)
    welcome = joining.join(token=token, name="far", roles=["env"], sent_version=version())
    known_as = JoinedIdentity(live_server.url, "far", welcome.secret, "", {})
    spool = Spool(tmp_path / "spool.sqlite3")
    local = use_reports(SpooledReports(known_as, spool))
    settings.DATA_DIR = tmp_path
    before = identity.current()
    identity.announce(identity.Identity(name="env1@far", queue="env", slots=1, host="far"))
    worker_row.beat()
    yield SimpleNamespace(
        user=user,
        spool=spool,
        spool_path=tmp_path / "spool.sqlite3",
        known_as=known_as,
        url=live_server.url,
        secret=welcome.secret,
    )
    identity.announce(before)
    use_reports(local)
    spool.close()


OWN = ("DATABASE_URL", "DESKHAND_REMOTE_NETWORKS")
GIVEN = {"DESKHAND_REMOTE_NETWORKS": "10.0.0.0/8", "DESKHAND_GATEWAY_VENDORS": "given"}


def queued(size: int = 1) -> Trajectory:
    request = GroupSpec(task=oracle_task(), size=size, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
    return create_group(request=request, team_id=make_team().pk).trajectories.first()


def run_given(row: Trajectory) -> None:
    trajectory_job.run(row.pk, make_ticket(row.pk, "far"))


def claim_given(row: Trajectory) -> assignments.Assignment | None:
    return trajectory_job.claim(row.pk, make_ticket(row.pk, "far"))


def spooled() -> SpooledReports:
    found = reports()
    assert isinstance(found, SpooledReports)
    return found


def deliver_all() -> int:
    door, count = spooled(), 0
    while sent := door.deliver():
        count += sent
    return count


def test_an_episode_is_recorded_as_on_one_machine(host):
    row = queued()
    run_given(row)
    row.refresh_from_db()
    assert row.status == "resetting", "nothing was delivered yet"
    assert deliver_all() > 8
    row.refresh_from_db()
    assert (row.status, row.score, row.num_turns, row.error) == ("terminated", 1.0, 4, "")
    assert row.worker.host == "far"
    assert row.worker.is_joined
    frames = {turn.frame for turn in row.turns.all()} | {row.final_frame}
    assert Frame.objects.filter(team_id=row.team_id, sha256__in=frames).count() == len(frames)
    assert all(turn.completed_at for turn in row.turns.all())
    assert spooled().spool.trajectories() == set()
    assert JoinedHost.objects.get().num_refused == 0


def test_the_web_may_be_away_from_the_claim_to_the_end(host):
    row = queued()
    door = spooled()
    working, reached = door._http, []
    with httpx.Client(base_url="http://127.0.0.1:9", trust_env=False) as closed:

        def claim_then_leave(request: httpx.Request) -> None:
            reached.append(request.url.path)
            door._http = closed

        working.event_hooks = {"request": [claim_then_leave]}
        run_given(row)
        assert reached == ["/hosts/ask/claim/"]
        with pytest.raises(ServerAway):
            door.deliver()
    working.event_hooks = {"request": []}
    door._http = working
    reports().beat_trajectories(all_held())  # what waits in the spool counts as alive
    assert lose_stale_trajectories() == []
    deliver_all()
    row.refresh_from_db()
    assert (row.status, row.score, row.num_turns) == ("terminated", 1.0, 4)


def test_a_claim_whose_answer_was_lost_is_run_again_while_its_host_goes_on(host):
    """The web stood still: it took the claim when nothing waited for the answer any more."""
    row = queued()
    answered = assignments.claim(row.pk, identity.current().name, make_ticket(row.pk, "far"))
    assert answered is not None
    heard_at = Trajectory.objects.get(pk=row.pk).heartbeat_at
    for seconds, lost in ((20, []), (40, [row.pk])):
        Worker.objects.update(heartbeat_at=heard_at + timedelta(seconds=seconds))
        assert lose_stale_trajectories() == lost
    again = row.group.trajectories.get(status="queued")
    assert again.retry_of_id == row.pk
    run_given(again)
    deliver_all()
    again.refresh_from_db()
    assert (again.status, again.score) == ("terminated", 1.0)


def test_what_is_sent_twice_is_recorded_once(host):
    row = queued()
    run_given(row)
    door = spooled()
    waiting = door.spool.oldest(100)
    batch = batch_of(door, waiting)
    deliver_all()
    row.refresh_from_db()
    before = (row.ended_at, row.num_turns, row.turns.count())
    again = receive.receive(JoinedHost.objects.get(), batch)
    row.refresh_from_db()
    assert (again.number, again.refused) == (waiting[-1].number, {})
    assert (row.ended_at, row.num_turns, row.turns.count()) == before


def batch_of(door, reports) -> batches.Batch:
    fields = ("number", "name", "body", "trajectory")
    copies = [batches.SentReport(**{name: getattr(one, name) for name in fields}) for one in reports]
    return batches.Batch(stream=door.spool.stream, reports=copies)


def test_of_reports_that_share_a_transaction_only_the_new_ones_are_recorded(host, monkeypatch):
    row = queued()
    run_given(row)
    door = spooled()
    names = [one.name for one in door.spool.oldest(100)]
    middle = names.index("open_turn") + 2
    assert names[middle - 1 : middle + 1] == ["close_turn", "open_turn"]
    with monkeypatch.context() as patched:  # the answer is lost
        patched.setattr(spooled_reports, "BATCH", middle)
        patched.setattr(door.spool, "drop_until", lambda number: None)
        assert door.deliver() == middle
    assert row.turns.count() == 1
    deliver_all()
    row.refresh_from_db()
    assert (row.status, row.turns.count()) == ("terminated", row.num_turns)
    assert JoinedHost.objects.get().num_refused == 0, "no turn was recorded twice"


def test_of_reports_that_share_a_transaction_a_wrong_one_is_refused_alone(host):
    row = queued()
    run_given(row)
    door = spooled()
    wrong = next(one.number for one in door.spool.oldest(100) if one.name == "close_turn")
    with door.spool._database as database:
        database.execute("UPDATE reports SET body = '{}' WHERE number = ?", [wrong])
    deliver_all()
    row.refresh_from_db()
    assert (row.status, row.turns.count()) == ("terminated", row.num_turns)
    assert row.turns.filter(completed_at=None).count() == 1
    assert JoinedHost.objects.get().num_refused == 1


def test_a_spool_outlives_its_process_and_a_new_process_gives_up_what_it_ran(host):
    row = queued()
    run_given(row)
    other = queued()
    claim_given(other)
    again = Spool(host.spool_path)  # killed: the next process opens the same file
    use_reports(SpooledReports(host.known_as, again))
    reports().report(workers.begin_anew, "env1@far")
    deliver_all()
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.status, row.score) == ("terminated", 1.0)
    assert (other.status, other.error_kind) == ("errored", "worker_lost")


def test_screenshots_travel_with_the_reports_that_name_them(host):
    row = queued()
    run_given(row)
    door, sent = spooled(), []
    door._http.event_hooks = {"request": [lambda request: sent.append(request.url.path)]}
    assert door.deliver() > 8
    assert sent == ["/hosts/reports/"]
    row.refresh_from_db()
    assert row.status == "terminated"


def test_texts_and_both_pictures_of_a_turn_travel_with_it(host):
    row = queued()
    claim_given(row)
    tree, terminal = ReadText("<desktop-frame/>"), ReadText("$ ls")
    picture = Picture.of(Image.new("RGB", (512, 384), "navy"))
    plain = replace(picture, texts=DesktopTexts(tree, terminal))
    shown = plain.drawn(Image.new("RGB", (512, 384), "red"))
    observation = Observation(
        sha256=shown.sha256,
        width=512,
        height=384,
        accessibility=tree.observed,
        terminal=terminal.observed,
        marks=Marks(plain=plain.sha256, boxes=((1, 2, 3, 4),)),
    )
    sent = (row.pk, 0, Source.ORACLE, observation, timezone.now())
    spooled().report_with_screen(row.team_id, shown, open_turn, *sent)
    deliver_all()
    turn = row.turns.get()
    assert (read_text(turn.accessibility), read_text(turn.terminal)) == ("<desktop-frame/>", "$ ls")
    assert (read_frame(turn.frame), read_frame(turn.plain)) == (shown.png, plain.png)
    assert turn_of(turn).observation == observation
    assert Frame.objects.filter(team_id=row.team_id).count() == 4


def test_a_screenshot_that_the_server_has_deleted_is_sent_again(host):
    row = queued()
    run_given(row)
    door = spooled()
    door._known_frames.update(named := door.spool.frames_until(door.spool.newest()))
    deliver_all()
    assert Frame.objects.filter(team_id=row.team_id).count() == len(named) > 1
    assert JoinedHost.objects.get().num_refused == 0


def test_a_wrong_screenshot_holds_up_no_report(host):
    row = queued()
    run_given(row)
    door = spooled()
    (team_id, sha256), *_ = door.spool.frames_until(door.spool.newest())
    with door.spool._database as database:
        database.execute("UPDATE frames SET png = ? WHERE sha256 = ?", [b"no picture", sha256])
    deliver_all()
    row.refresh_from_db()
    assert row.status == "terminated"
    assert not Frame.objects.filter(team_id=team_id, sha256=sha256).exists()


def test_a_host_brings_screenshots_only_to_teams_that_it_works_for(host):
    row, foreign = queued(), make_team()
    run_given(row)
    door = spooled()
    (_, sha256), *_ = door.spool.frames_until(door.spool.newest())
    frame = SpooledFrame(foreign.pk, sha256, door.spool.read_frame(row.team_id, sha256))
    door.spool.add("record_final_screen", '{"trajectory_id": 0, "frame": ""}', None, [frame])
    deliver_all()
    assert Frame.objects.filter(team_id=row.team_id, sha256=sha256).exists()
    assert not Frame.objects.filter(team_id=foreign.pk).exists()


def test_a_batch_ends_before_its_screenshots_are_too_long(host, monkeypatch):
    row = queued()
    run_given(row)
    door = spooled()
    monkeypatch.setattr(spooled_reports, "BATCH_BYTES", 1)
    assert door.deliver() == 1
    assert deliver_all() > 8
    row.refresh_from_db()
    assert (row.status, row.num_turns) == ("terminated", 4)


def test_a_report_that_cannot_be_recorded_holds_up_no_other(host):
    doomed, row = queued(), queued()
    run_given(doomed)
    run_given(row)
    Trajectory.objects.filter(pk=doomed.pk).delete()
    deliver_all()
    row.refresh_from_db()
    assert row.status == "terminated"
    assert JoinedHost.objects.get().num_refused > 0


def test_a_cancel_reaches_the_host_with_its_heartbeat(host):
    row = queued()
    claim_given(row)
    with held(row.pk):
        Trajectory.objects.filter(pk=row.pk).update(status="cancelled")
        assert not reports().trajectory_now(row.pk).has_ended
        reports().beat_trajectories(all_held())
        assert reports().trajectory_now(row.pk).has_ended


def test_a_host_touches_only_what_it_runs(host):
    row = queued()
    other = Worker.objects.exclude(host="far").first()
    Trajectory.objects.filter(pk=row.pk).update(status="running", worker=other)
    door = spooled()
    with pytest.raises(CallRefused, match=f"trajectory {row.pk} is not run by far"):
        door.request(host_mirror.take_away, row.pk, "x")
    with pytest.raises(CallRefused, match="far speaks for"):
        door.request(host_mirror.claim_mirror, other.host, "x", False)
    door.report(trajectories.end_errored, row.pk, "kind", "words")
    deliver_all()
    row.refresh_from_db()
    assert row.status == "running"
    assert JoinedHost.objects.get().num_refused == 1


def test_tokens_are_good_once_and_versions_have_to_match(host):
    token = joining.make_token(user=host.user, roles=["env"], team=None)
    with pytest.raises(joining.JoinRefused, match="this host runs Deskhand 0.0.1, the server"):
        joining.join(token=token, name="b", roles=["env"], sent_version="0.0.1")
    with pytest.raises(joining.JoinRefused, match="a host far has joined; revoke it"):
        joining.join(token=token, name="far", roles=["env"], sent_version=version())
    joining.join(token=token, name="b", roles=["env"], sent_version=version())
    with pytest.raises(joining.JoinRefused, match="used up"):
        joining.join(token=token, name="c", roles=["env"], sent_version=version())


def test_a_revoked_host_is_out_and_its_work_is_run_again(host):
    row = queued()
    claim_given(row)
    joining.revoke(host=JoinedHost.objects.get(), user=host.user)
    row.refresh_from_db()
    assert (row.status, row.error_kind) == ("errored", "worker_lost")
    with pytest.raises(CallRefused, match="join it again"):
        worker_row.beat()


def test_only_a_heartbeat_notes_how_a_host_was_heard(host):
    JoinedHost.objects.update(clock_skew_s=500)
    joined_at = JoinedHost.objects.get().heard_at
    claim_given(queued())
    assert JoinedHost.objects.get().heard_at == joined_at
    worker_row.beat()
    heard = JoinedHost.objects.get()
    assert heard.heard_at > joined_at
    assert abs(heard.clock_skew_s) < 60


def test_a_joined_process_has_no_database(host, tmp_path):
    """What the settings make of the identity file, in a process of its own."""
    JoinedIdentity(host.url, "far", host.secret, "", GIVEN).write(tmp_path)
    program = (
        "import os, django; django.setup(); from django.conf import settings as of; "
        "print(of.DATABASES['default']['ENGINE'], of.REMOTE_NETWORKS, of.GATEWAY_VENDORS, "
        "'DESKHAND_REMOTE_NETWORKS' in os.environ)"
    )
    environment = {
        **{name: value for name, value in os.environ.items() if name not in OWN},
        "DESKHAND_DATA_DIR": str(tmp_path),
        "DESKHAND_GATEWAY_VENDORS": "mine",
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == "django.db.backends.dummy"
    assert "10.0.0.0/8" in done.stdout
    assert "['mine']" in done.stdout, "variables of this host's own go first"
    assert done.stdout.endswith(" False\n"), "settings set no variables"
