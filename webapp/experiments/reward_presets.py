"""Reward presets of a team: shipped ones, and those that people saved, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from training.contracts.config import RewardConfig, RewardPreset
from training.contracts.config.reward_presets import REWARD_PRESETS
from training.contracts.config.section import Problem
from training.rewards.expressions import preset_problems
from webapp.accounts.audit.log_action import log_action
from webapp.accounts.models import AuditAction, Team
from webapp.experiments.models import SavedRewardPreset
from webapp.lib.request_values import BadValue

if TYPE_CHECKING:
    from django.contrib.auth.models import User

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
SHIPPED_NAMES = {preset.partition(".")[0] for preset in REWARD_PRESETS}


def preset_names(team: Team) -> list[str]:
    """Every preset that the team can launch with: shipped ones, then its own, the newest version first."""
    return [*REWARD_PRESETS, *(str(saved) for saved in SavedRewardPreset.objects.filter(team=team))]


def saved_preset(team: Team, preset: str) -> SavedRewardPreset | None:
    """The team's own preset that "NAME.vVERSION" names."""
    name, _, version = preset.rpartition(".v")
    if not re.fullmatch(r"[0-9]{1,6}", version):
        return None
    return SavedRewardPreset.objects.filter(team=team, name=name, version=int(version)).first()


def with_saved_terms(values: Mapping[str, Any], team: Team) -> dict[str, Any]:
    """A config's plain values, with the terms of the team's own preset that they only name.

    Terms that stand there stay, and so does a name that is not known: validation says what is wrong with it.
    """
    rewards = values.get("rewards")
    if not isinstance(rewards, Mapping) or rewards.get("definition") not in (None, ""):
        return dict(values)
    name = rewards.get("preset")
    saved = saved_preset(team, name) if isinstance(name, str) and name not in REWARD_PRESETS else None
    if saved is None:
        return dict(values)
    filled = {"alpha": saved.alpha, **rewards, "definition": saved.definition}
    return {**values, "rewards": filled}


def save_preset(
    *, team: Team, user: User, name: str, definition: RewardPreset, alpha: float, note: str
) -> SavedRewardPreset:
    """The next version of `name`; older ones stay as they are. Raises BadValue."""
    if not NAME.fullmatch(name):
        raise BadValue("name", "use a-z, 0-9 and -, at most 60 of them, without a version")
    if name in SHIPPED_NAMES:
        raise BadValue("name", f"{name} is a shipped preset; take another name")
    for place, problem in preset_problems(definition):
        raise BadValue(definition.terms[place].term, problem)
    mine = SavedRewardPreset.objects.filter(team=team, name=name)
    try:
        with transaction.atomic():
            last = mine.aggregate(last=Max("version"))["last"] or 0
            saved = SavedRewardPreset.objects.create(
                team=team,
                name=name,
                version=last + 1,
                definition=definition.model_dump(mode="json"),
                alpha=alpha,
                note=note[:300],
                owner=user,
            )
            log_action(
                AuditAction.SAVED,
                person=user,
                team=team,
                kind="reward",
                object_id=saved,
                note=saved.note,
            )
    except IntegrityError as error:
        raise BadValue("name", "another version was saved at this moment; save again") from error
    return saved


def saved_problems(rewards: RewardConfig, team: Team) -> Iterator[Problem]:
    """Terms that do not compile, and a name that means something else in this team."""
    if rewards.definition is None:
        return
    for place, problem in preset_problems(rewards.definition):
        yield "rewards.definition", f"{rewards.definition.terms[place].term}: {problem}"
    saved = saved_preset(team, rewards.preset)
    if saved is not None and saved.rewards.definition != rewards.definition:
        yield (
            "rewards.definition",
            f"is not what {rewards.preset} was saved with, and presets are never edited: empty it, or give "
            "rewards.preset another name",
        )
