"""The buffer as a list and in clusters."""

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.lib.query_string import changed_query
from webapp.lib.request_values import whole_number
from webapp.replay.curation.acceptance_views import acceptance_context
from webapp.replay.curation.clusters import clusters_of, keep_best
from webapp.replay.filters import ALL, EntryFilter
from webapp.replay.models import ReplayEntry
from webapp.replay.queries import entries
from webapp.replay.queries.sorting import Facts, Surroundings, ordered_ids
from webapp.replay.services.clusters import MAX_KEEP

PAGE_SIZE = 40
DEFAULT_KEEP = 3
MAX_PAGE = 100_000


@require_safe
def entry_list(request: MemberRequest) -> HttpResponse:
    """Entries of a filter in an order, with how rare and how hard their tasks are."""
    team_id = member(request).team_id
    chosen = EntryFilter.from_query(request.GET, ALL)
    around = Surroundings(team_id)
    ids = ordered_ids(team_id, chosen, around)
    page = min(_page_number(request.GET), max(0, len(ids) - 1) // PAGE_SIZE)
    shown = ids[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
    found = {entry.pk: entry for entry in entries.entry_rows(team_id).filter(pk__in=shown)}
    alike = _sizes(team_id, [entry.cluster for entry in found.values()])
    ctx = {
        **entries.filter_fields(team_id, chosen),
        **_pages(request.GET, page, has_more=len(ids) > (page + 1) * PAGE_SIZE),
        "rows": [_row(found[pk], around, alike) for pk in shown if pk in found],
        "count_text": f"{len(ids):,} entr{'y' if len(ids) == 1 else 'ies'}",
    }
    return render(request, "replay/list.html", ctx)


def _row(entry: ReplayEntry, around: Surroundings, alike: dict[int, int]) -> dict[str, Any]:
    run = entry.trajectory
    facts = Facts(
        pk=entry.pk,
        task_id=run.task_id,
        num_turns=run.num_turns,
        reward=run.reward,
        experiment_id=run.experiment_id,
        policy_version=run.policy_version,
        source=run.source,
    )
    return {
        "entry": entry,
        "num_usable": around.usable.get(run.task_id, 0),
        "share": around.share(run.task_id),
        "age": around.age(facts),
        "num_alike": alike.get(entry.cluster or 0, 0),
    }


def _sizes(team_id: int, clusters: list[int | None]) -> dict[int, int]:
    """Cluster -> entries in it."""
    rows = ReplayEntry.objects.filter(team_id=team_id, cluster__in=[one for one in clusters if one])
    return dict(rows.order_by().values_list("cluster").annotate(num=Count("id")))


@require_safe
def clusters(request: MemberRequest) -> HttpResponse:
    """Near-identical entries together, largest clusters first."""
    membership = member(request)
    chosen = EntryFilter.from_query(request.GET, ALL)
    keep = whole_number(request.GET.get("keep", "") or str(DEFAULT_KEEP), "keep", low=1, high=MAX_KEEP)
    page = _page_number(request.GET)
    found = clusters_of(membership.team_id, chosen, keep=keep, page=page)
    ctx = {
        **entries.filter_fields(membership.team_id, chosen),
        **_pages(request.GET, page, has_more=found.has_more),
        **acceptance_context(membership.team),
        "found": found,
        "keep": keep,
        "max_keep": MAX_KEEP,
        "count_text": f"{found.num_clusters:,} cluster{'' if found.num_clusters == 1 else 's'}",
    }
    return render(request, "replay/clusters.html", ctx)


@require_POST
def clusters_keep(request: MemberRequest) -> HttpResponse:
    """Keep the best of one cluster, or of all within the filter of the URL."""
    team = member(request, Role.ANNOTATOR).team
    cluster = request.POST.get("cluster", "")
    changed, left = keep_best(
        team=team,
        user=request.user,
        chosen=EntryFilter.from_query(request.GET, ALL),
        keep=whole_number(request.POST.get("keep", ""), "keep", low=1, high=MAX_KEEP),
        cluster=whole_number(cluster, "cluster") if cluster else None,
    )
    rest = f" {left} are left: keep the best once more." if left else ""
    if changed:
        words = "entry" if changed == 1 else "entries"
        undo = "Undo takes all of them back."
        messages.success(
            request, f"{changed} {words} rejected as near-duplicates. {undo}{rest}", "undo-label"
        )
    else:
        messages.info(request, "There was nothing to reject.")
    return redirect(f"{reverse('replay-clusters')}{changed_query(request.GET, page=None)}")


def _page_number(query: QueryDict) -> int:
    """0-based, of `page`, which is 1-based."""
    return whole_number(query.get("page", "") or "1", "page", low=1, high=MAX_PAGE) - 1


def _pages(query: QueryDict, page: int, *, has_more: bool) -> dict[str, str]:
    """The links of `parts/pagination.html`."""
    back = changed_query(query, page=page if page > 1 else None) or "?"
    return {
        "newer": back if page else "",
        "older": changed_query(query, page=page + 2) if has_more else "",
    }
