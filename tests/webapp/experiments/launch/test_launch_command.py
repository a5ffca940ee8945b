"""`manage.py launch` refuses what the launch page would not let pass, and names it."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from testing.factories import make_team
from webapp.experiments.models import Experiment

pytestmark = pytest.mark.django_db


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
