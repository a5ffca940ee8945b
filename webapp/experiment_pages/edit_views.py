"""Edit one experiment; tag and archive many."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_POST

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.models import Role
from webapp.experiments.access import get_experiment, ticked_experiments
from webapp.experiments.services.experiments import add_tag, archive_experiments, edit_experiment
from webapp.lib.request_values import BadValue


@require_POST
def edit(request: MemberRequest, pk: int) -> HttpResponse:
    """Name, note and tags (separated by commas) of one."""
    experiment = get_experiment(request, pk, Role.OPERATOR)
    typed = request.POST
    try:
        edit_experiment(
            experiment=experiment,
            user=request.user,
            name=typed.get("name"),
            note=typed.get("note"),
            tags=typed["tags"].split(",") if "tags" in typed else None,
        )
    except BadValue as error:
        messages.error(request, f"Nothing was changed: {error}.")
    return redirect("experiment-detail", pk)


@require_POST
def tag(request: MemberRequest) -> HttpResponse:
    """Put a tag on the ticked ones of the list."""
    member(request, Role.OPERATOR)
    try:
        chosen, typed = ticked_experiments(request), request.POST.get("tag", "")
        done = add_tag(experiments=chosen, tag=typed, user=request.user)
    except BadValue as error:
        messages.error(request, f"Nothing was changed: {error}.")
    else:
        messages.success(request, f"{done} experiment{pluralize(done)} got the tag.")
    return redirect("experiment-list")


@require_POST
def archive(request: MemberRequest) -> HttpResponse:
    """Archive the ticked ones, or with `restore` put them back."""
    member(request, Role.OPERATOR)
    chosen, on = ticked_experiments(request), "restore" not in request.POST
    done = archive_experiments(experiments=chosen, on=on, user=request.user)
    word = "archived" if on else "put back into the list"
    if done:
        messages.success(request, f"{done} experiment{pluralize(done)} {word}.")
    if len(chosen) > done:
        left = len(chosen) - done
        messages.warning(
            request,
            f"{left} had been before, belong to a sweep, or ha{pluralize(left, 's,ve')} not ended yet.",
        )
    return redirect("experiment-list")
