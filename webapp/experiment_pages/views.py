"""The list, the queue and the experiment page."""

import time
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import SavedView
from webapp.accounts.queries.saved_views import hidden_columns, view_menu
from webapp.accounts.services.audit_log import log_viewing, viewing_session
from webapp.experiment_pages import experiment_table
from webapp.experiment_pages.page_counts import empty_tabs, read_with_experiment, tab_counts
from webapp.experiment_pages.part_contexts import TABS, context_of
from webapp.experiments.access import get_experiment
from webapp.experiments.models import ExperimentStatus
from webapp.experiments.placement.waiting_reasons import queue_in_order, queue_state, why_waiting
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import last_seq

UNDO_KEY = "undo_cancel"
"""Session: {"at": when, "undo": what takes it back, "number": of how many} of the last bulk cancel."""
UNDO_OFFERED_S = 60


@require_safe
def experiment_list(request: MemberRequest) -> HttpResponse:
    """The table with its filters; the cursor is read before the rows."""
    ctx = {
        **_list_context(request),
        "statuses": ExperimentStatus.choices,
        "num_undoable": _num_undoable(request),
        **experiment_table.filter_choices(request.membership.team),
        "views": view_menu(request, SavedView.Page.EXPERIMENTS, experiment_table.COLUMNS),
    }
    return render(request, "experiments/list.html", ctx)


def _num_undoable(request: MemberRequest) -> int:
    """How many of the last bulk cancel can be taken back; offered for a minute."""
    kept = request.session.get(UNDO_KEY)
    return kept.get("number", 0) if kept and time.time() - kept["at"] < UNDO_OFFERED_S else 0


@require_safe
def experiment_rows(request: MemberRequest) -> HttpResponse:
    """The table alone, as live updates ask for it."""
    return render(request, "experiments/parts/list.html", _list_context(request))


def _list_context(request: MemberRequest) -> dict[str, Any]:
    membership = member(request)
    filters = {name: request.GET.get(name, "") for name in experiment_table.FILTERS}
    rows = experiment_table.filtered(membership.team, filters)
    total, cursor = experiment_table.count_and_cursor(rows)
    pages = Paginator(rows, experiment_table.PAGE_SIZE)
    pages.count = total  # read already, together with the cursor and before the rows
    page = pages.get_page(request.GET.get("page"))
    return {
        "filters": filters,
        "is_filtered": any(value for name, value in filters.items() if name != "sort"),
        "sort": filters["sort"] or "newest",
        "page": page,
        "rows": experiment_table.list_rows(page.object_list),
        "cursor": cursor,
        "hidden": hidden_columns(request.GET, experiment_table.COLUMNS),
    }


@require_safe
def queue(request: MemberRequest) -> HttpResponse:
    """What runs and what waits, in running order."""
    cursor = last_seq("queue")
    return render(request, "experiments/queue.html", {**_queue_context(request), "cursor": cursor})


def queue_rows(request: MemberRequest) -> HttpResponse:
    """The queue alone: for live updates, and the answer to a change of order."""
    return render(request, "experiments/parts/queue.html", _queue_context(request))


def _queue_context(request: MemberRequest) -> dict[str, Any]:
    membership = member(request)
    found = experiment_table.waiting_and_active(membership.team)
    state = queue_state()
    queued = queue_in_order(state)
    waiting: list[dict[str, Any]] = [
        {
            "experiment": experiment,
            "why": why_waiting(experiment, state),
            "is_mine": experiment.team_id == membership.team_id,
        }
        for experiment in queued
    ]
    ids = [experiment.pk for experiment in queued]
    for index, item in enumerate(waiting):
        item["before_previous"] = ids[index - 1] if index else None
        item["before_next"] = ids[index + 2] if index + 2 < len(ids) else ""
        item["is_last"] = index == len(ids) - 1
    return {
        **found,
        "waiting": waiting,
        "num_gpu_workers": state.num_workers,
        "team": membership.team,
    }


@require_safe
def experiment_detail(request: MemberRequest, pk: int) -> HttpResponse:
    """The page of one experiment; `?tab=` chooses what is below its header."""
    viewing: dict[str, Any] = {"person": request.user, "kind": "experiment", "object_id": pk, "how": "wall"}
    also: dict[str, Any] = {**read_with_experiment(pk), "is_watched": viewing_session(**viewing)}
    experiment = get_experiment(request, pk, **also)
    has_ended = ExperimentStatus(experiment.status).is_final()
    if not has_ended:
        log_viewing(**viewing, team=experiment.team_id, is_known=experiment.is_watched)  # type: ignore[attr-defined]
    tab = request.GET.get("tab", "overview")
    tab = tab if tab in TABS else "overview"
    counts, empty = tab_counts(experiment), empty_tabs(experiment) - {tab}
    ctx: dict[str, Any] = {
        "experiment": experiment,
        "stream": experiment_stream(pk),
        "cursor": experiment.cursor or 0,  # type: ignore[attr-defined]
        "tab": tab,
        "tabs": [(name, title, counts.get(name)) for name, (title, _) in TABS.items() if name not in empty],
        "has_ended": has_ended,
    }
    for part in ("header", "incidents", "stages", *TABS[tab][1]):
        if not (part == "wall" and tab == "overview" and has_ended):  # fetched when the page is there
            ctx |= context_of(part, experiment, request)
    return render(request, "experiments/detail.html", ctx)
