"""The acceptance rule: it decides once over what no person touched, and stops when it is wrong too often."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from testing.factories import make_group, make_replay_entry, make_task, make_trajectory
from testing.page_text import page_text
from webapp.accounts.models import Team
from webapp.replay.models import AcceptanceRule, ReplayEntry, RuleSample
from webapp.replay.services import acceptance
from webapp.replay.services.acceptance import Applied, apply_rule, apply_rules, audit_of, set_rule
from webapp.replay.services.labels import label_entry, undo_latest

pytestmark = pytest.mark.django_db


def clustered(team: Team, rewards: list[float], **values: object) -> list[ReplayEntry]:
    """Near-identical entries of one task."""
    group, values = make_group(team=team, task=make_task()), {"score": 1.0, **values}
    rows = [
        make_replay_entry(trajectory=make_trajectory(group=group, member=member, reward=reward, **values))
        for member, reward in enumerate(rewards)
    ]
    ReplayEntry.objects.filter(pk__in=[row.pk for row in rows]).update(cluster=rows[0].pk)
    return rows


def verdicts(rows: list[ReplayEntry]) -> list[str]:
    found = ReplayEntry.objects.in_bulk([row.pk for row in rows])
    return [found[row.pk].verdict for row in rows]


def test_the_best_of_a_cluster_are_accepted_once_and_never_what_a_person_touched(team, anna: User):
    rows = clustered(team, [0.5, 1.5, 1.0, 2.0])
    weak, human = clustered(team, [1.0], score=0.6), clustered(team, [1.0], source="human")
    endless = clustered(team, [1.0], status="truncated")
    label_entry(entry=rows[3], user=anna, tags=["look"])
    rule = set_rule(team=team, user=anna, keep=2, audit_share=0.0)
    assert apply_rule(rule) == Applied(accepted=1, rejected=2)
    assert verdicts(rows) == ["rejected", "accepted", "rejected", "inbox"], "the third is beyond the best two"
    assert verdicts([*weak, *human]) == ["inbox", "inbox"], "people judge what scored less, and people's own"
    assert verdicts(endless) == ["inbox"], "people judge what a limit ended"
    assert ReplayEntry.objects.get(pk=rows[1].pk).tags == ["by-rule"]
    undo_latest(team=team, user=anna)
    assert list(apply_rules()) == [], "what was taken back is a person's to decide"
    later = clustered(team, [1.0])
    assert list(apply_rules()) == [1]
    assert verdicts(later) == ["accepted"]


def test_a_rule_that_people_find_wrong_too_often_stops_by_itself(team, anna: User, web: Client, monkeypatch):
    monkeypatch.setattr(acceptance, "MIN_JUDGED", 4)
    rule = set_rule(team=team, user=anna, keep=3, audit_share=1.0, max_error=0.3)
    sampled = [clustered(team, [1.0])[0] for _ in range(4)]
    assert apply_rule(rule) == Applied(sampled=4)
    for row, verdict in zip(sampled, ("accepted", "gold", "rejected", "rejected"), strict=True):
        label_entry(entry=row, user=anna, verdict=verdict)
    audit = audit_of(rule)
    assert (audit.num_judged, audit.rate) == (4, 0.5)
    assert 0.14 < audit.low < 0.16
    assert 0.84 < audit.high < 0.86
    fresh = clustered(team, [1.0])
    assert list(apply_rules()) == []
    assert verdicts(fresh) == ["inbox"]
    page = page_text(web.get("/replay/clusters/"))
    assert "People rejected 2 of 4 of its sample: more than 30 %." in page
    assert "Wrong in 50 % of the sample, 95 % interval 15 % to 85 % (n = 4 of 4" in page


def test_the_page_sets_applies_and_stops_it(team, web: Client):
    rows = clustered(team, [1.0, 1.0, 1.0])
    form = {"min_score": "1", "keep": "1", "audit": "1", "limit": "10"}
    said = page_text(web.post("/replay/acceptance/", form, follow=True))
    assert "rejected as near-duplicates" in said
    assert sorted(verdicts(rows))[1:] == ["rejected", "rejected"] or RuleSample.objects.exists()
    assert web.post("/replay/acceptance/", {**form, "keep": "0"}).status_code == 400
    web.post("/replay/acceptance/", {"stop": "1"})
    assert AcceptanceRule.objects.get().stopped == "anna stopped it."
