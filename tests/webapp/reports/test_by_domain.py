"""Success by domain, with steps and temperature, and the same episodes as OSWorld's tools read them."""

import io
import json
import re
from collections import defaultdict
from pathlib import Path
from zipfile import ZipFile

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.urls import reverse

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_group, make_task, make_trajectory, make_user
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from training.contracts.types import Purpose, TrajectoryStatus
from webapp.experiments.models import Evaluation, Experiment

pytestmark = [pytest.mark.db, pytest.mark.django_db]

CALC, CHROME = "libreoffice_calc", "chrome"


@pytest.fixture
def experiment() -> Experiment:
    config = ExperimentConfig.model_validate({"desktops": {"max_turns": 50}})
    return make_experiment(name="Mine, 50 steps", config=config.model_dump(mode="json"))


def played(
    experiment: Experiment,
    task_id: str,
    family: str,
    *episodes: tuple[float | None, int],
    max_turns: int | None = None,
):
    """A group of an evaluation: (score, turns) of each episode; None errored, 50 turns ended by the limit."""
    task = make_task(family=family, split="heldout")
    task.task_id = task_id
    task.spec["max_turns"] = max_turns
    task.save()
    group = make_group(
        experiment=experiment, task=task, size=len(episodes), purpose=Purpose.EVALUATION, temperature=0.7
    )
    for member, (score, turns) in enumerate(episodes):
        ended = TrajectoryStatus.TRUNCATED if turns == 50 else TrajectoryStatus.TERMINATED
        status = ended if score is not None else TrajectoryStatus.ERRORED
        made = make_trajectory(group=group, member=member, turns=3, status=status, reward=score)
        type(made).objects.filter(pk=made.pk).update(num_turns=turns, final_frame=made.last_frame)
    scored = [score for score, _ in episodes if score is not None]
    return sum(score >= 1 for score in scored), len(scored), group.pk


@pytest.fixture
def evaluation(experiment: Experiment) -> Evaluation:
    tasks = {
        f"{CALC}.a1": played(experiment, f"{CALC}.a1", CALC, (1.0, 9), (0.0, 50)),
        f"{CALC}.a2": played(experiment, f"{CALC}.a2", CALC, (0.0, 50), (None, 1)),
        f"{CHROME}.b1": played(experiment, f"{CHROME}.b1", CHROME, (1.0, 50), (0.6, 12)),
    }
    return make_evaluation(experiment, name="after", tasks=tasks, temperature=0.7)


def cells(page: str, name: str) -> list[str]:
    row = re.search(rf'<th scope="row">{name}</th>(.*?)</tr>', page)
    assert row, name
    return re.findall(r'<td class="num">(.*?)</td>', row[1])


def test_the_page_has_every_domain_with_steps_and_temperature(client: Client, evaluation: Evaluation):
    client.force_login(make_user("viewer", team=evaluation.experiment.team))
    address = f"{reverse('success-by-domain')}?id={evaluation.experiment_id}"
    page = page_text(client.get(address))
    assert "50 steps, sampled (T = 0.7), 2 samples a task" in page
    # tasks, solved and ended, pass@1, pass@2, by 15 steps, mean score
    assert cells(page, CALC) == ["2", "25 %", "25 %", "50 %", "25 %", "25 %"]
    assert cells(page, CHROME) == ["1", "0 %", "50 %", "100 %", "0 %", "80 %"]
    assert cells(page, "All") == ["3", "17 %", "33 %", "67 %", "17 %", "43 %"]
    assert cells(page, "Qwen3-VL-8B-Instruct") == ["–", "–", "–", "33.9 %"]
    assert cells(page, "OpenCUA-7B") == ["24.3 %", "27.9 %", "26.6 %", "–"]


def test_what_was_published_stands_under_osworlds_tasks_only(client: Client, experiment: Experiment):
    client.force_login(make_user("viewer", team=experiment.team))
    tasks = {
        "menu-1": played(experiment, "menu-1", "menu", (1.0, 3), max_turns=3),
        "note-1": played(experiment, "note-1", "note", (1.0, 5), max_turns=6),
    }
    make_evaluation(experiment, name="after", tasks=tasks, temperature=0.7)
    page = page_text(client.get(f"{reverse('success-by-domain')}?id={experiment.pk}"))
    assert "3 to 6 steps, sampled (T = 0.7)" in page, "the limit that applied"
    assert "by 15 steps, at least" not in page
    assert "OpenCUA" not in page


def test_the_folder_is_laid_out_as_osworlds_tools_read_it(
    client: Client, evaluation: Evaluation, tmp_path: Path
):
    client.force_login(make_user("viewer", team=evaluation.experiment.team))
    answer = client.get(reverse("osworld-results", args=[evaluation.pk]))
    with ZipFile(io.BytesIO(async_to_sync(joined)(answer.streaming_content))) as archive:
        archive.extractall(tmp_path)
    first = read_results(tmp_path / "results-1" / "pyautogui" / "screenshot" / "mine-50-steps")
    second = read_results(tmp_path / "results-2" / "pyautogui" / "screenshot" / "mine-50-steps")
    assert first == {CALC: {"a1": 1.0, "a2": 0.0}, CHROME: {"b1": 1.0}}
    assert second == {CALC: {"a1": 0.0}, CHROME: {"b1": 0.6}}, "an errored episode has no result"
    counts = json.loads((tmp_path / "outcomes.json").read_text())
    assert counts == {
        "rule_of_result_txt": "state",
        "solved": 1,
        "solved_at_limit": 1,
        "failed": 3,
        "errored": 1,
    }
    reason = (
        tmp_path / "results-1" / "pyautogui" / "screenshot" / "mine-50-steps" / CHROME / "b1" / "outcome.txt"
    )
    assert reason.read_text() == "solved_at_limit\n", "which its result.txt counts, by OSWorld's rule"
    folder = tmp_path / "results-1" / "pyautogui" / "screenshot" / "mine-50-steps" / CALC / "a1"
    lines = [json.loads(line) for line in (folder / "traj.jsonl").read_text().splitlines()]
    assert [line["step_num"] for line in lines] == [1, 2, 3]
    assert lines[0]["action"] == "pyautogui.click(20, 40)"
    assert (lines[-1]["action"], lines[-1]["done"], lines[-1]["info"]) == ("DONE", True, {"done": True})
    assert lines[0]["response"] == '{"action":"left_click","coordinate":[39,104]}'
    shown = [(folder / line["screenshot_file"]).read_bytes()[:8] for line in lines]
    assert shown == [b"\x89PNG\r\n\x1a\n"] * 3


def read_results(folder: Path) -> dict[str, dict[str, float]]:
    """{domain: {id: result}}, by walking the folders as OSWorld's show_result.py does."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for file in folder.glob("*/*/result.txt"):
        found[file.parent.parent.name][file.parent.name] = float(file.read_text())
    return dict(found)


async def joined(pieces) -> bytes:
    return b"".join([piece async for piece in pieces])
