"""`manage.py launch` refuses what the launch page would not let pass, and names it."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from testing.factories import make_team
from webapp.experiments.models import Experiment

pytestmark = pytest.mark.django_db
QUIETLY: dict[str, Any] = {"anyway": True, "stdout": StringIO()}


def test_what_cannot_run_is_refused_with_field_and_remedy() -> None:
    make_team()
    with pytest.raises(CommandError, match="model.path: Model not found. .* Looked on "):
        call_command("launch", preset="first-desk", changes=["model.path=nowhere"])
    assert not Experiment.objects.exists()


def test_it_can_be_queued_anyway() -> None:
    make_team()
    call_command(
        "launch", preset="first-desk", changes=["model.path=nowhere"], anyway=True, stdout=StringIO()
    )
    assert Experiment.objects.get().settings.model.path == "nowhere"


def test_values_of_a_file_are_laid_over_the_presets(tmp_path: Path) -> None:
    make_team()
    file = tmp_path / "prompt.yaml"
    file.write_text("prompt:\n  style: tool-call\n  task_text: |\n    Do {instruction}\n    now\n")
    call_command(
        "launch",
        preset="first-desk",
        laid_over=file,
        changes=["prompt.style=computer-use"],
        **QUIETLY,
    )
    prompt = Experiment.objects.get().settings.prompt
    assert (prompt.style, prompt.task_text, prompt.history) == (
        "computer-use",
        "Do {instruction}\nnow\n",
        "full",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [("prompt: {stile: x}", "prompt.stile"), ("prompt: [", "--with .*prompt.yaml"), ("- 1", "--with")],
)
def test_a_file_that_cannot_be_laid_over_is_named(tmp_path: Path, text: str, message: str) -> None:
    make_team()
    file = tmp_path / "prompt.yaml"
    file.write_text(text)
    with pytest.raises(CommandError, match=message):
        call_command("launch", preset="first-desk", laid_over=file, **QUIETLY)
