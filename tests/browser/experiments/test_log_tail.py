"""The log of a running experiment: new lines appear when the run says something, and when it does not."""

from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.factories import make_experiment
from webapp.experiments.log_files import log_folder
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish

pytestmark = pytest.mark.django_db(transaction=True)


def test_lines_appear_with_the_runs_events_and_without_them(sign_in: SignIn, people: People):
    experiment = make_experiment(team=people.team)
    folder = log_folder(experiment.pk)
    assert folder.is_relative_to(Path(settings.DATA_DIR))
    folder.mkdir(parents=True)
    log = folder / "trainer-1.log"
    log.write_text("INFO loading the model\n")
    page = sign_in(people.viewer)
    page.goto(f"/experiments/{experiment.pk}/?tab=log")
    lines = page.locator("[data-log-lines]")
    expect(lines).to_contain_text("loading the model")

    with log.open("a") as file:
        file.write("INFO step 1 is done\n")
    publish(experiment_stream(experiment.pk), "metrics.recorded", {"step": 1})
    expect(lines).to_contain_text("step 1 is done")
    with log.open("a") as file:
        file.write("WARNING nobody is told of this line\n")
    expect(lines).to_contain_text("nobody is told of this line")
