"""A policy that reads only the accessibility tree acts on a real desktop, by the real env worker."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from testing.factories import make_attempt, make_experiment
from testing.watch_installation import wait_for
from training.content.task_sets.steps_and_evaluators import file_holds, setup_step
from training.contracts.types import Completion, Purpose, Task
from webapp.experiments.models import AttemptStatus, TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.row_to_types import trajectory_of
from webapp.trajectories.services.groups import GroupSpec, create_group
from webapp.trajectories.services.texts import read_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

ASK = (
    "zenity --question --title Choose --text 'Which one?' --ok-label Azure --cancel-label Crimson; "
    "echo $? > /home/user/answer.txt"
)
CHOOSE = Task(
    task_id="choose-crimson",
    instruction="Press the button Crimson.",
    config=(
        setup_step("launch", command=ASK, shell=True),
        setup_step("activate_window", window_name="Choose"),
    ),
    evaluator=file_holds("/home/user/answer.txt", "1", 3.0),
)
PROMPT = {
    "observation": ["accessibility", "terminal"],
    "accessibility_form": "short",
    "coordinate_space": "screen",
    "style": "computer-use",
}


class Reader(BaseHTTPRequestHandler):
    """A policy server whose policy presses the button that the instruction names, where the tree has it."""

    requests: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(body)
        request = next(line for line in body.splitlines() if line.startswith(b'{"'))
        text = self.answer(json.loads(request)["text"])
        completion = Completion(text=text, token_ids=(1,), behaviour_logprobs=(-0.1,))
        sent = completion.model_dump_json().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def answer(self, text: str) -> str:
        place = re.search(r'^push-button "Crimson" (\d+),(\d+)', text, re.MULTILINE)
        if place is None:
            return '{"action": "terminate", "status": "success"}'
        return json.dumps({"action": "left_click", "coordinate": [int(place[1]), int(place[2])]})

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def policy() -> Iterator[tuple[str, list[bytes]]]:
    """(URL, bodies of the requests for turns)."""
    reader = type("Reader", (Reader,), {"requests": []})
    server = HTTPServer(("127.0.0.1", 0), reader)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", reader.requests
    server.shutdown()
    server.server_close()


def test_it_presses_what_the_tree_names_and_everything_is_recorded(transactional_db, env_thread, policy):
    url, requests = policy
    import_task_set(name="texts", origin="test", tasks=[CHOOSE])
    config = {"desktops": {"provider": "x11", "num_desktops": 1, "retries": 0}, "prompt": PROMPT}
    experiment = make_experiment(config=config)
    make_attempt(experiment, status=AttemptStatus.RUNNING, policy_url=url, policy_token="token")
    task = TaskRecord.objects.get(task_id=CHOOSE.task_id)
    request = GroupSpec(task=task, size=1, purpose=Purpose.TRAIN)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment, attempt=1)
    wait_for("the end", lambda: Group.objects.get(pk=group.pk).finished_at, patience_s=120)
    row = Trajectory.objects.get(group=group)
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
