"""A picture shows what a program does late, or says that it does not; timers of no account cost no time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
from django.urls import reverse

from testing.factories import make_team, make_user
from testing.workers.slow_answers import PROGRAMS, answers
from training.contracts.config import ExperimentConfig
from training.contracts.types import Action, Purpose, Source, Task
from webapp.accounts.models import Role
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers.desktops.agent_contract import Waiting
from workers.desktops.late_repaints import HORIZON_S, IN_VAIN, LateRepaints, Unsettled
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.screen_settling import DEFAULT, Pace, SettleLimits
from workers.env import trajectory_job


def clicked(desktop: DesktopEnv, after_ms: int, program: str) -> tuple[bool, str | None]:
    """Whether the picture after a click shows the answer, and what it says."""
    x, y = answers(desktop, after_ms, program)
    before = desktop.observe()
    desktop.act(Action(kind="click", x=x, y=y))
    after = desktop.observe()
    return after.raw_digest != before.raw_digest, after.unsettled


@pytest.mark.desktop
@pytest.mark.parametrize(
    ("program", "after_ms"),
    [("tk", 400), ("tk", 250), ("gtk", 400), ("gtk", 200), ("sleeper", 300), ("sleeper", 450)],
)
def test_an_answer_by_a_timer_is_in_the_picture(desktop, program, after_ms):
    assert clicked(desktop, after_ms, program) == (True, None)


@pytest.mark.desktop
@pytest.mark.parametrize("program", ["tk", "gtk", "sleeper"])
def test_a_picture_says_that_a_later_answer_is_to_come(desktop, program):
    assert clicked(desktop, 1200, program) == (False, Unsettled.DUE)
    time.sleep(1.5)
    assert desktop.has_changed()
    assert desktop.observe().unsettled is None


@pytest.mark.desktop
def test_a_screen_that_never_rests_is_waited_for_no_longer_than_its_limit_and_says_so(desktop):
    started = time.monotonic()
    assert clicked(desktop, 0, "tk") == (True, Unsettled.MOVING)
    assert time.monotonic() - started < 60
    desktop.reset()
    assert desktop.observe().unsettled is None


@pytest.mark.desktop
@pytest.mark.django_db(transaction=True)
def test_a_turn_whose_screen_did_not_settle_says_so_on_its_page(desk_client, settings, tmp_path, client):
    settings.DESKHOST_SOCKET, settings.MEDIA_ROOT = desk_client.socket_path, str(tmp_path)
    script = {"path": "/home/user/answers.py", "content": PROGRAMS["gtk"]}
    start = {"command": ["/usr/bin/python3", "/home/user/answers.py", "1900"]}
    click, done = {"kind": "click", "x": 160, "y": 160}, {"kind": "terminate", "status": "success"}
    task = Task(
        task_id="late/answer",
        instruction="Click and be done.",
        config=(
            {"type": "write_file", "parameters": script},
            {"type": "launch", "parameters": start},
            {"type": "activate_window", "parameters": {"window_name": "Slow answer"}},
        ),
        evaluator={"func": "infeasible"},
        oracle={"actions": [click, done]},
    )
    team = make_team()
    import_task_set(name="late", origin="test", tasks=[task])
    config = ExperimentConfig().model_dump(mode="json")
    experiment = Experiment.objects.create(team=team, name="late", config=config)
    request = GroupSpec(
        task=TaskRecord.objects.get(), size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE
    )
    row = create_group(request=request, team_id=team.pk, experiment=experiment).trajectories.get()
    trajectory_job.run(row.pk)
    row.refresh_from_db()
    assert row.error == ""
    turns = list(row.turns.order_by("index"))
    assert [turn.unsettled for turn in turns] == ["", "due"]
    assert row.final_frame not in {turn.frame for turn in turns}, "what came late is judged, and shown"
    client.force_login(make_user(Role.VIEWER, team=team))
    page = client.get(reverse("trajectory-detail", args=[row.pk])).content.decode()
    assert page.count("A program was about to go on by itself when this picture was taken.") == 1


# -- what is learnt of timers ---------------------------------------------------------------


@dataclass
class Screen:
    """Nothing is drawn, but for the first `draws` waits for a timer."""

    draws: int = 0
    waits: list[float] = field(default_factory=list)
    pace = Pace()

    def wait_change(self, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        time.sleep(0.001)
        if timeout_s < 0.1 or not self.draws:
            return False
        self.draws -= 1
        return True

    def cpu_s(self) -> float:
        return 0.0


AT_REST = SettleLimits(first_change_s=0.002, quiet_s=0.002)


def waits_of(late: LateRepaints, screen: Screen) -> list[float]:
    """How long it waited for timers."""
    screen.waits.clear()
    late.wait(screen, AT_REST)
    return [round(wait, 2) for wait in screen.waits if wait > 0.05]


def test_a_kind_of_timer_that_brings_nothing_is_soon_not_waited_for():
    programs = [("editor", 0.52)]
    late, screen = LateRepaints(lambda: Waiting(0, list(programs))), Screen()
    for _ in range(IN_VAIN):
        assert waits_of(late, screen)[0] == 0.56
    assert waits_of(late, screen) == []
    late.forget()
    assert waits_of(late, screen) == [], "another trajectory's editor does the same"
    programs[0] = ("editor", 0.23)
    assert waits_of(late, screen)[0] == 0.27, "its menu is another kind of timer"


def test_a_timer_that_brings_something_is_waited_for_again():
    late, screen = LateRepaints(lambda: Waiting(0, [("editor", 0.52)])), Screen(draws=3)
    late.wait(screen, AT_REST)
    screen.draws = 0
    for _ in range(IN_VAIN + 3):
        assert waits_of(late, screen) != []
    assert waits_of(late, screen) == []


def test_only_timers_within_reach_are_waited_for_and_those_behind_it_are_said():
    timers = [("editor", HORIZON_S + 0.2)]
    late, screen = LateRepaints(lambda: Waiting(0, timers)), Screen()
    assert late.wait(screen, AT_REST) is Unsettled.DUE
    assert waits_of(late, screen) == []
    assert 0 < late.foreseen_s() < 1
    late.look_later(is_changed=False)
    assert late.foreseen_s() > 0, "not yet"
    timers[0] = ("editor", 4.0)
    assert late.wait(screen, AT_REST) is None


def test_a_program_that_wants_to_compute_is_waited_for_though_it_draws_nothing():
    looks = iter([Waiting(2, []), Waiting(1, []), Waiting(0, [])])
    late = LateRepaints(lambda: next(looks))
    assert late.wait(Screen(), AT_REST) is None
    assert next(looks, None) is None


def test_one_that_computes_for_ever_ends_the_wait_at_its_limit():
    late = LateRepaints(lambda: Waiting(1, []))
    started = time.monotonic()
    limits = SettleLimits(first_change_s=0.0, quiet_s=0.002, limit_s=0.2)
    assert late.wait(Screen(), limits) is Unsettled.MOVING
    assert time.monotonic() - started < 20


def test_a_desktop_that_does_not_tell_is_waited_for_as_long_as_its_screen_moves():
    late = LateRepaints(lambda: None)
    assert late.wait(Screen(), DEFAULT) is None
