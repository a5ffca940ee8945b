"""The screen that the evaluator judged is a picture of its own, in the viewer and in the replay inbox."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from testing.browser.people import People, SignIn
from testing.browser.people_at_desktops import EnvWorker, record_of, wait_for
from testing.factories import make_replay_entry
from training.content.task_sets import first_desk
from training.contracts.types import Action, ActionKind, Observation, Purpose, Source, Task, Turn
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers.env.actors import Decision

pytestmark = [pytest.mark.desktop, pytest.mark.django_db(transaction=True)]


@dataclass
class TypingAgent:
    """Types one letter per turn; with `ends_after`, says that it is done after that number."""

    ends_after: int

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        if index == self.ends_after:
            return Decision(actions=(Action(kind=ActionKind.TERMINATE, status="success"),))
        return Decision(actions=(Action(kind=ActionKind.TYPE, text="mmmmm"),))

    def resume(self, turns: list[Turn]) -> None: ...

    def close(self) -> None: ...


def note(max_turns: int) -> Task:
    task = next(task for task in first_desk.generate() if task.family == "note")
    return task.model_copy(update={"max_turns": max_turns})


@pytest.mark.parametrize(("ends_after", "max_turns"), [(2, 500), (99, 2)], ids=["terminated", "truncated"])
def test_the_end_shows_what_the_last_action_left(
    sign_in: SignIn, people: People, env_worker: EnvWorker, ends_after: int, max_turns: int
):
    env_worker.agent = TypingAgent(ends_after)
    request = GroupSpec(
        task=record_of(note(max_turns)), size=1, purpose=Purpose.TRAIN, source=Source.SCRIPTED
    )
    row = create_group(request=request, team_id=people.team.pk).trajectories.get()
    env_worker.start(row)
    wait_for(lambda: Trajectory.objects.get(pk=row.pk).is_final)
    row.refresh_from_db()

    frames = list(row.turns.order_by("index").values_list("frame", flat=True))
    before_last_action = frames[1]
    page = sign_in(people.viewer)
    page.goto(f"/trajectories/{row.pk}/")
    page.keyboard.press("End")
    expect(page.locator("[data-place]")).to_have_text("After the last turn")
    shown = page.locator("[data-image] img")
    expect(shown).to_have_attribute("src", f"/frames/{row.final_frame}.png")
    assert row.final_frame not in ("", before_last_action)
    assert frames[2:] in ([], [row.final_frame])

    make_replay_entry(team=people.team, trajectory=row)
    page.goto("/replay/")
    expect(page.locator("[data-caption]")).to_have_text("The screen that the evaluator judged")
    expect(shown).to_have_attribute("src", f"/frames/{row.final_frame}.png")
    page.goto(f"/replay/{row.replay_entries.get().pk}/")
    expect(page.locator(".entry-screens .cell").last).to_contain_text("End")
