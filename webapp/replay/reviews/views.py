"""Reviews: rounds, a person's next entry, agreement and disagreements, guidelines."""

from collections.abc import Mapping

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.experiments.models import TaskSet
from webapp.lib.request_values import BadValue, whole_number
from webapp.replay.access import get_item, get_label, get_review
from webapp.replay.filters import SORTS, EntryFilter
from webapp.replay.models import LabelGuide, ReviewLabel, ReviewRound, Verdict
from webapp.replay.queries import entries
from webapp.replay.reviews.agreement import agreement_of, disagreements, settled_by_people
from webapp.replay.services.guides import guide_of, save_guide
from webapp.replay.services.review_rounds import (
    MAX_ITEMS,
    AlreadyLabelled,
    annotators_of,
    decide_item,
    last_label,
    next_label,
    note_opened,
    start_round,
    submit_label,
    take_back_label,
)

NUM_SHOWN = 50
VERDICT_KEYS = (("A", "accepted", "Accept"), ("R", "rejected", "Reject"), ("G", "gold", "Gold"))


ROUND_VERDICTS = [*Verdict.choices, ("all", "All")]
NEW_ROUND = {"num_entries": "50", "num_labels": "2", "num_checks": "5"}
"""What the form of a round begins with."""
FIELDS = {
    "name": "Name",
    "num_entries": "Entries",
    "num_labels": "People for each entry",
    "num_checks": "Checks mixed in",
    "people": "Who labels",
}


@require_safe
def reviews(request: MemberRequest) -> HttpResponse:
    """The rounds, what of them waits for the user, and a form for a new one."""
    return _reviews_page(request, NEW_ROUND, [], None)


def _reviews_page(
    request: MemberRequest, typed: Mapping[str, str], people: list[str], problem: BadValue | None
) -> HttpResponse:
    """With what was typed, and what is wrong with it."""
    membership = member(request)
    team = membership.team
    mine = Count("items__labels", filter=Q(items__labels__person=request.user.pk, items__labels__verdict=""))
    rows = team.review_rounds.select_related("owner").annotate(
        num_mine=mine,
        num_labelled=Count("items__labels", filter=~Q(items__labels__verdict="")),
        num_all=Count("items__labels"),
    )
    may_label = Role(membership.role).includes(Role.ANNOTATOR)
    chosen = EntryFilter.from_query(request.GET)
    ctx = {
        **entries.filter_fields(team.pk, chosen),
        "reviews": rows[:NUM_SHOWN],
        "people": annotators_of(team) if may_label else [],
        "max_items": MAX_ITEMS,
        "orders": SORTS.items(),
        "typed": typed,
        "verdicts": ROUND_VERDICTS,
        "typed_people": people,
        "problem": problem,
        "problem_field": FIELDS.get(problem.field, problem.field) if problem else "",
    }
    return render(request, "replay/reviews.html", ctx, status=400 if problem else 200)


@require_POST
def start(request: MemberRequest) -> HttpResponse:
    """Begin a round with entries of the form's filter."""
    team = member(request, Role.ANNOTATOR).team
    post = request.POST
    try:
        review = start_round(
            team=team,
            user=request.user,
            name=post.get("name", ""),
            people=post.getlist("people"),
            num_labels=whole_number(post.get("num_labels", ""), "num_labels"),
            num_entries=whole_number(post.get("num_entries", ""), "num_entries"),
            num_checks=whole_number(post.get("num_checks", "") or "0", "num_checks"),
            chosen=EntryFilter.from_query(post),
        )
    except BadValue as problem:
        return _reviews_page(request, post.dict(), post.getlist("people"), problem)
    return redirect("replay-review", review.pk)


@require_safe
def review(request: MemberRequest, pk: int) -> HttpResponse:
    """Agreement so far, people, and what they disagree on."""
    found = get_review(request, pk)
    mine = ReviewLabel.objects.filter(item__round=found, person=request.user, verdict="")
    ctx = {
        "review": found,
        "agreement": agreement_of(found),
        "disagreements": disagreements(found),
        "num_mine": mine.count(),
        "settled": settled_by_people(found),
        "last": last_label(found, request.user),
        "verdict_keys": VERDICT_KEYS,
    }
    return render(request, "replay/review.html", ctx)


@require_http_methods(["GET", "POST"])
def label(request: MemberRequest, pk: int) -> HttpResponse:
    """The user's next entry of a round; a POST stores the verdict of the one that was shown."""
    found = get_review(request, pk, Role.ANNOTATOR)
    if request.method == "POST":
        return _store(request, found)
    wanted = next_label(found, request.user)
    if wanted is None:
        messages.success(request, "You have labelled all of your entries.")
        return redirect("replay-review", pk)
    note_opened(wanted)
    entry = entries.entry_rows(found.team_id).get(pk=wanted.item.entry_id)
    (player,) = entries.player_entries(found.team_id, [entry.pk], [entry])
    rows = ReviewLabel.objects.filter(item__round=found, person=request.user)
    counts = rows.aggregate(num=Count("id"), num_open=Count("id", filter=Q(verdict="")))
    ctx = {
        "review": found,
        "label": wanted,
        "entry": entry,
        # What others said of the entry would be no blind label any more.
        "player": {name: player[name] for name in ("id", "instruction", "turns", "endFrame")},
        "checks": player["checks"],
        "guide": guide_of(found.team_id, entry.trajectory.task.task_set_id),
        "number": counts["num"] - counts["num_open"] + 1,
        "num_all": counts["num"],
        "verdict_keys": VERDICT_KEYS,
        "last": last_label(found, request.user),
    }
    return render(request, "replay/review_label.html", ctx)


def _store(request: MemberRequest, found: ReviewRound) -> HttpResponse:
    given = get_label(found, request.user, whole_number(request.POST.get("label", ""), "label"))
    try:
        submit_label(label=given, verdict=request.POST.get("verdict", ""), note=request.POST.get("note", ""))
    except (BadValue, AlreadyLabelled) as problem:
        messages.error(request, str(problem))
    return redirect("replay-review-label", found.pk)


@require_POST
def undo(request: MemberRequest, pk: int) -> HttpResponse:
    """Take back the label of the form; its person labels the entry again."""
    found = get_review(request, pk, Role.ANNOTATOR)
    given = get_label(found, request.user, whole_number(request.POST.get("label", ""), "label"))
    try:
        take_back_label(label=given)
    except AlreadyLabelled as problem:
        messages.error(request, str(problem))
        return redirect("replay-review", pk)
    return redirect("replay-review-label", pk)


@require_POST
def settle(request: MemberRequest, pk: int) -> HttpResponse:
    """Settle a disagreement of a round."""
    found = get_review(request, pk, Role.ANNOTATOR)
    try:
        decide_item(
            item=get_item(found, whole_number(request.POST.get("item", ""), "item")),
            user=request.user,
            verdict=request.POST.get("verdict", ""),
        )
    except BadValue as problem:
        messages.error(request, str(problem))
    return redirect(f"{reverse('replay-review', args=[pk])}#disagreements")


@require_http_methods(["GET", "POST"])
def guides(request: MemberRequest) -> HttpResponse:
    """The team's guidelines for each task set; a POST saves the next version of one."""
    if request.method == "POST":
        team = member(request, Role.ANNOTATOR).team
        try:
            saved = save_guide(
                team=team,
                user=request.user,
                task_set=request.POST.get("task_set", ""),
                text=request.POST.get("text", ""),
            )
        except BadValue as problem:
            messages.error(request, str(problem))
        else:
            messages.success(request, f"Saved as version {saved.version}.")
        return redirect("replay-guides")
    membership = member(request)
    newest: dict[int, LabelGuide] = {}
    for guide in LabelGuide.objects.filter(team=membership.team).select_related("owner").order_by("version"):
        newest[guide.task_set_id] = guide
    ctx = {
        "guides": [(each, newest.get(each.pk)) for each in TaskSet.objects.order_by("name")],
    }
    return render(request, "replay/guides.html", ctx)
