"""After a take-over nothing is pressed, though the web process was killed while the person held a key."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from testing.factories import make_trajectory, make_user
from tests.workers.desktops.x11.test_held_input import LEFT, RIGHT, SHIFT, down, person, wait_for
from training.contracts.types import Source, Task, TrajectoryStatus
from webapp.accounts.models import Role
from webapp.screens.services import controls, screens
from workers.env.takeover.takeovers import Takeovers
from workers.environments.local import LocalEnvironment
from workers.environments.registry import EnvironmentRequest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]


@pytest.mark.parametrize(("keys", "buttons"), [((SHIFT,), LEFT), ((), RIGHT)])
def test_the_agents_next_turn_begins_with_nothing_pressed(desk_client, keys, buttons):
    request = EnvironmentRequest("x11", (512, 384), f"tests-{os.getpid()}")
    environment = LocalEnvironment.lease(desk_client, request, wait_s=60, ttl_s=120)
    try:
        environment.reset()
        row = make_trajectory(status=TrajectoryStatus.RUNNING)
        screens.open_screen(trajectory_id=row.pk, addresses=["unix:/nowhere"])
        user = make_user(Role.OPERATOR, team=row.group.team)
        control = controls.request_control(trajectory=row, user=user)
        task = Task(task_id="t", instruction="x", screen=(512, 384))
        assignment = SimpleNamespace(row=row, task=task, source=Source.POLICY, is_draft=False)
        server = person(environment.desktop, keys, buttons)
        wait_for(environment.desktop, lambda seen: seen != (0, 0))

        def has_ended() -> bool:
            server.close()
            control.refresh_from_db()
            controls.hand_back_control(control=control)
            return False

        takeover = Takeovers(assignment, environment, [], lambda: None).wait(has_ended)
        assert takeover is not None
        assert down(environment.desktop) == (0, 0)
    finally:
        environment._keeper.close()
        environment.desktop.close()
