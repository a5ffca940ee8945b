"""smoldesk on a real desktop: oracles solve every family, doing nothing none, all clicks are listed."""

import os
from collections.abc import Iterator

import pytest

from testing.workers.prove_task import prove
from training.content.task_sets.smoldesk import generate
from training.content.task_sets.smoldesk.screens import SCREEN
from training.observations.turn_text import short_list
from workers.desktops.contract import DesktopSpec
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks import prepare_and_score
from workers.tasks.oracles import solution

TASKS = {task.family: task for task in generate()}

pytestmark = [pytest.mark.desktop, pytest.mark.slow]


@pytest.fixture
def readable_desktop(desk_client) -> Iterator[DesktopEnv]:
    spec = DesktopSpec(width=SCREEN[0], height=SCREEN[1], accessibility=True)
    lease = desk_client.acquire("x11", spec, holder=f"tests-{os.getpid()}", ttl_s=300)
    with DesktopEnv(desk_client, lease) as env:
        yield env


@pytest.mark.parametrize("family", TASKS)
def test_the_oracle_scores_1_and_doing_nothing_0(family, readable_desktop):
    assert prove(TASKS[family], readable_desktop).holds


@pytest.mark.parametrize("family", TASKS)
def test_every_click_is_the_centre_of_a_listed_widget(family, readable_desktop):
    prepare_and_score.setup(TASKS[family], readable_desktop)
    for action in solution(TASKS[family])[:-1]:
        read = short_list(readable_desktop.agent.accessibility(), lambda x, y: (x, y))
        assert action.x is None or f"{action.x},{action.y}" in read
        readable_desktop.act(action)
        readable_desktop.observe()
