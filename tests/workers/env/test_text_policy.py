"""Policies that read the tree, or numbered boxes, act on a real desktop by the real env worker."""

import re
from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image

from testing.factories import make_attempt, make_experiment
from testing.watch_installation import wait_for
from testing.workers.text_policy import CHOOSE, click_crimson, served_policy
from training.contracts.types import Purpose
from webapp.experiments.models import AttemptStatus, TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.retention.queries.prunable import is_shown_by_others
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Frame, Group, Trajectory
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.trajectories.services.texts import read_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

PROMPT = {
    "observation": ["accessibility", "terminal"],
    "accessibility_form": "short",
    "coordinate_space": "screen",
    "style": "computer-use",
}


def name_the_mark(text: str) -> str:
    """The answer of a policy that sees numbered boxes."""
    found = re.search(r"^(\d+)\tpush-button\tCrimson\t", text, re.MULTILINE)
    return f"```python\npyautogui.click(tag_{found[1]})\n```" if found else "DONE"


def move_and_press(text: str) -> str:
    """Two actions in one completion."""
    place = re.search(r'^push-button "Crimson" (\d+),(\d+)', text, re.MULTILINE)
    return f"pyautogui.moveTo(3, 4)\npyautogui.click({place[1]}, {place[2]})" if place else "DONE"


@pytest.fixture
def policy(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[bytes]]]:
    """(URL, bodies of the requests for turns)."""
    with served_policy(getattr(request, "param", click_crimson)) as served:
        yield served


def run_one(url: str, prompt: dict, provider: str = "x11", patience_s: float = 120) -> Trajectory:
    """One trajectory of the task, ended."""
    import_task_set(name="texts", origin="test", tasks=[CHOOSE])
    desktops = {"provider": provider, "num_desktops": 1, "retries": 0, "trajectory_timeout_s": patience_s}
    config = {"desktops": desktops, "prompt": prompt}
    experiment = make_experiment(config=config)
    make_attempt(experiment, status=AttemptStatus.RUNNING, policy_url=url, policy_token="token")
    task = TaskRecord.objects.get(task_id=CHOOSE.task_id)
    request = GroupSpec(task=task, size=1, purpose=Purpose.TRAIN)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment, attempt=1)
    wait_for("the end", lambda: Group.objects.get(pk=group.pk).finished_at, patience_s=patience_s)
    return Trajectory.objects.get(group=group)


def test_it_presses_what_the_tree_names_and_everything_is_recorded(transactional_db, env_thread, policy):
    url, requests = policy
    row = run_one(url, PROMPT)
    assert (row.status, row.score, row.error) == ("terminated", 1.0, "")
    assert not any(b"PNG" in body for body in requests), "it is blind but for the text"
    first, last = trajectory_of(row).turns
    assert first.observation.text.startswith("Press the button Crimson.\n\n[Accessibility tree]\n")
    assert first.observation.text.endswith("\n\n[Terminal]\n(no terminal)")
    assert first.observation.sha256, "people still see the screen"
    assert "Crimson" not in last.observation.text
    for turn in (first, last):
        read = turn.observation.accessibility
        assert read is not None
        tree = read_text(read.sha256)
        assert tree.startswith("<desktop-frame ")
        assert read.num_chars == len(tree)
    assert 'name="Crimson"' in read_text(first.observation.accessibility.sha256)
    assert first.measured is not None
    assert first.measured.tree_before == first.observation.accessibility.num_chars
    assert first.measured.tree_after == last.observation.accessibility.num_chars
    assert (first.measured.is_grounded, first.measured.terminal_changed) == (False, False)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [name_the_mark], indirect=True)
def test_it_names_a_numbered_box_of_the_picture_that_it_sees(transactional_db, env_thread, policy):
    url, requests = policy
    row = run_one(url, {"observation": ["marks"], "dialect": "pyautogui", "coordinate_space": "screen"})
    assert (row.status, row.score, row.error) == ("terminated", 1.0, "")
    first = trajectory_of(row).turns[0]
    marks = first.observation.marks
    assert marks is not None
    seen, plain = read_frame(first.observation.sha256), read_frame(marks.plain)
    assert any(seen in body for body in requests), "the policy sees what is stored"
    left, top, width, height = marks.boxes[0]
    with Image.open(BytesIO(seen)) as drawn, Image.open(BytesIO(plain)) as screen:
        assert drawn.getpixel((left + width // 2, top)) == (255, 0, 0) != screen.getpixel((left, top))
    assert first.action.x in range(0, first.observation.width)
    turn = row.turns.get(index=0)
    assert turn.plain == marks.plain
    assert Frame.objects.filter(sha256__in=[turn.frame, turn.plain]).count() == 2
    assert is_shown_by_others(marks.plain, ())


@pytest.mark.slow
@pytest.mark.parametrize("policy", [move_and_press], indirect=True)
def test_two_actions_of_one_completion_are_recorded_one_by_one(transactional_db, env_thread, policy):
    url, _ = policy
    row = run_one(url, {**PROMPT, "dialect": "pyautogui", "actions_per_turn": 2})
    assert (row.status, row.score, row.error) == ("terminated", 1.0, "")
    first, last = trajectory_of(row).turns
    assert [action.kind for action in first.actions] == ["move", "click"]
    assert (first.action.kind, first.earlier_actions[0].x, first.earlier_actions[0].y) == ("click", 3, 4)
    assert last.index == 1, "one observation, after the last of them"
    assert "Crimson" not in last.observation.text
    assert first.observation.sha256 != last.observation.sha256
