"""The lab's page, what a preset would have done, and saving it."""

from time import perf_counter
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from training.contracts.config.reward_presets import REWARD_PRESETS, RewardConfig
from training.rewards.expression_fields import OF_TRAJECTORIES, OF_TURNS
from training.rewards.terms import TERMS
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role, Team
from webapp.experiments.models import SavedRewardPreset
from webapp.experiments.services.reward_presets import save_preset
from webapp.lib.request_values import BadValue
from webapp.rewards_lab.effects import distribution, effects_of
from webapp.rewards_lab.preset_form import Editor, chosen_preset, editor_of, read_preset, typed_editor
from webapp.rewards_lab.slices import (
    Rewarded,
    load_slice,
    newest_scored,
    own_parity,
    reward_slice,
    slice_choices,
)

COUNTS = (
    ("mean", "mean of turns"),
    ("sum", "sum of turns"),
    ("max", "best turn"),
    ("once", "once"),
)
FIRST = RewardConfig().preset


@require_safe
def lab(request: MemberRequest) -> HttpResponse:
    """The editor, with the preset of `?preset=`; what it would have done is asked for by the page."""
    rewards = chosen_preset(member(request).team, request.GET.get("preset", FIRST))
    return _page(request, editor_of(rewards), request.GET)


def _page(request: MemberRequest, editor: Editor, values: QueryDict, status: int = 200) -> HttpResponse:
    """`values`: slice, preset and compare, as they were chosen."""
    team, wanted = request.membership.team, values.get("preset", FIRST)
    slices = slice_choices(team.pk)
    saved = list(SavedRewardPreset.objects.filter(team=team).select_related("owner"))
    ctx = {
        "editor": editor,
        "wanted": wanted,
        "saved": saved,
        "chosen": next((each for each in saved if str(each) == wanted), None),
        "presets": [*REWARD_PRESETS, *map(str, saved)],
        "slices": slices,
        "slice": values.get("slice") or newest_scored(team.pk, slices),
        "compare": values.get("compare", ""),
        "terms": {name: (term.__doc__ or "").strip().partition("\n")[0] for name, term in TERMS.items()},
        "fields": [("of the trajectory", OF_TRAJECTORIES), ("of a turn", OF_TURNS)],
        "counts": COUNTS,
        "may_save": Role(request.membership.role).includes(Role.OPERATOR),
    }
    return render(request, "rewards_lab/lab.html", ctx, status=status)


@require_POST
def try_preset(request: MemberRequest) -> HttpResponse:
    """What the preset in the editor, and the one beside it, would have done; it changes nothing."""
    team = member(request).team
    began = perf_counter()
    try:
        ctx = _results(team, request)
    except BadValue as refused:
        return HttpResponse(str(refused), status=422, content_type="text/plain; charset=utf-8")
    ctx["seconds"] = perf_counter() - began
    return render(request, "rewards_lab/results.html", ctx)


def _results(team: Team, request: MemberRequest) -> dict[str, Any]:
    rewards = read_preset(request.POST)
    stored = load_slice(team.pk, request.POST.get("slice", ""))
    if not stored.trajectories:
        return {"stored": stored}
    before = Rewarded([each.reward for each in stored.trajectories], {})
    names, tried = ["stored", "edited"], [before, reward_slice(stored, rewards)]
    if compare := request.POST.get("compare", ""):
        names.append(compare)
        tried.append(reward_slice(stored, chosen_preset(team, compare)))
    return {
        "stored": stored,
        "parity": own_parity(stored),
        "presets": list(zip(names, [effects_of(stored, one) for one in tried], strict=True)),
        "names": names,
        "bins": distribution([one.rewards for one in tried]),
    }


@require_POST
@once_per_form
def save(request: MemberRequest) -> HttpResponse:
    """The next version of the name that was typed; shown again as it was when it cannot be saved."""
    team = member(request, Role.OPERATOR).team
    typed = request.POST
    try:
        rewards = read_preset(typed)
        assert rewards.definition is not None
        saved = save_preset(
            team=team,
            user=request.user,
            name=typed.get("name", "").strip(),
            definition=rewards.definition,
            alpha=rewards.alpha,
            note=typed.get("note", ""),
        )
    except BadValue as refused:
        messages.error(request, f"Nothing was saved: {refused}.")
        return _page(request, typed_editor(typed), typed, status=422)
    messages.success(request, f"Saved as {saved}.")
    if "launch" in typed:
        return redirect(f"{reverse('experiment-launch')}?{urlencode({'reward': saved.pk})}")
    query = {"preset": str(saved), "slice": typed.get("slice", ""), "compare": typed.get("compare", "")}
    return redirect(f"{reverse('reward-lab')}?{urlencode(query)}")
