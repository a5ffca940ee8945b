"""The team's pages: the list, writing a version, reading one, its links."""

from dataclasses import replace

from django.contrib import messages
from django.db.models import Count, Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role
from webapp.analysis.series.chart_panels import PANELS
from webapp.experiments.models import Experiment
from webapp.lib.keyset_pages import paginate
from webapp.lib.request_values import BadValue, whole_number, whole_numbers
from webapp.reports import pages
from webapp.reports.access import get_report, get_version
from webapp.reports.frozen_content import MAX_TRAJECTORIES, Choices
from webapp.reports.models import Report, ReportLink
from webapp.reports.services import links
from webapp.reports.services.links import link_url
from webapp.reports.services.reports import delete_report, write_version

FIRST_CHARTS = ["Success and reward"]


@require_safe
def report_list(request: MemberRequest) -> HttpResponse:
    """Newest first."""
    rows = Report.objects.filter(team=member(request).team)
    rows = rows.annotate(num_versions=Count("versions"), written_at=Max("versions__created_at"))
    page = paginate(rows, request.GET, sorts={"newest": "-id"}, default="newest", noun="reports")
    return render(request, "reports/list.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def new_report(request: MemberRequest) -> HttpResponse:
    """The form, with the experiments of `?id=`; POST freezes the first version."""
    team = member(request, Role.OPERATOR).team
    if request.method == "POST":
        return _write(request, None)
    ids = [whole_number(text, "id") for text in request.GET.getlist("id")]
    newest = Experiment.objects.filter(team=team).order_by("-pk").values_list("pk", flat=True)[:1]
    choices = Choices(ids or list(newest), charts=FIRST_CHARTS, with_tasks=True, with_config=len(ids) > 1)
    return _form(request, choices, title="", text="", report=None)


@require_http_methods(["GET", "HEAD", "POST"])
@once_per_form
def new_version(request: MemberRequest, pk: int) -> HttpResponse:
    """The form as the newest version was asked for; POST freezes another one. Older ones stay as they are."""
    report = get_report(request, pk, Role.OPERATOR)
    if request.method == "POST":
        return _write(request, report)
    last = report.versions.first()
    if last is None:
        raise Http404("The report has no version.")
    return _form(request, Choices(**last.choices), title=last.title, text=last.text, report=report)


@require_safe
def report_detail(request: MemberRequest, pk: int, number: int | None = None) -> HttpResponse:
    """One version, the newest without a number."""
    report = get_report(request, pk)
    versions = list(report.versions.select_related("owner").defer("content"))
    if not versions:
        raise Http404("The report has no version.")
    version = get_version(request, pk, versions[0].number if number is None else number)
    shown = ReportLink.objects.filter(version__report=report).select_related("version", "owner")
    may_operate = Role(request.membership.role).includes(Role.OPERATOR)
    ctx = {
        "report": report,
        "versions": versions,
        "links": [(link, link_url(request, link)) for link in shown] if may_operate else [],
        "days": links.DAYS,
        "default_days": links.DEFAULT_DAYS,
        "now": timezone.now(),
        "base": reverse("report-version", args=[report.pk, version.number]),
        **pages.version_context(version),
    }
    return render(request, "reports/detail.html", ctx)


@require_safe
def report_picture(request: HttpRequest, pk: int, number: int, sha256: str) -> HttpResponse:
    return pages.picture(get_version(request, pk, number), sha256)


@require_safe
def report_export(request: HttpRequest, pk: int, number: int, key: str, kind: str) -> HttpResponse:
    return pages.export(get_version(request, pk, number), key, kind)


@require_POST
def delete(request: MemberRequest, pk: int) -> HttpResponse:
    """The report with all versions and links."""
    report = get_report(request, pk, Role.OPERATOR)
    delete_report(report=report, user=request.user)
    messages.success(request, f"The report “{report.title}” is deleted, and its links show nothing any more.")
    return redirect("report-list")


@require_POST
def create_link(request: MemberRequest, pk: int, number: int) -> HttpResponse:
    """A link to this version for people without an account."""
    version = get_version(request, pk, number, Role.OPERATOR)
    days = whole_number(request.POST.get("days", ""), "days")
    if days not in links.DAYS:
        raise BadValue("days", f"must be one of {', '.join(str(one) for one in links.DAYS)}")
    links.make_link(version=version, user=request.user, days=days)
    messages.success(
        request, f"A link to version {number} is made; everyone who has it can read that version."
    )
    return redirect(f"{reverse('report-version', args=[pk, number])}#links")


@require_POST
def revoke_link(request: MemberRequest, pk: int, link_pk: int) -> HttpResponse:
    """The link shows nothing from now on."""
    report = get_report(request, pk, Role.OPERATOR)
    link = get_object_or_404(ReportLink, pk=link_pk, version__report=report)
    links.revoke_link(link=link, user=request.user)
    messages.success(request, "The link is revoked.")
    return redirect(f"{reverse('report-detail', args=[pk])}#links")


def _write(request: MemberRequest, report: Report | None) -> HttpResponse:
    typed = request.POST
    choices = Choices(
        experiments=[whole_number(text, "id") for text in typed.getlist("id")],
        charts=[title for title in typed.getlist("charts") if title in {panel.title for panel in PANELS}],
        with_tasks="tasks" in typed,
        with_config="config" in typed,
    )
    title, text = typed.get("title", ""), typed.get("text", "")
    try:
        ids = typed.get("trajectories", "").replace("#", "").replace(" ", "")
        chosen = whole_numbers(ids, "trajectories", at_most=MAX_TRAJECTORIES)
        choices = replace(choices, trajectories=chosen)
        version = write_version(
            team=request.membership.team, user=request.user, title=title, text=text,
            choices=choices, report=report,
        )  # fmt: skip
    except BadValue as error:
        messages.error(request, f"Nothing was frozen: {error}.")
        return _form(request, choices, title=title, text=text, report=report, status=422)
    return redirect("report-version", version.report_id, version.number)


def _form(
    request: MemberRequest,
    choices: Choices,
    *,
    title: str,
    text: str,
    report: Report | None,
    status: int = 200,
) -> HttpResponse:
    rows = Experiment.objects.filter(team=request.membership.team).order_by("-pk").only("pk", "name")
    places = {pk: place for place, pk in enumerate(choices.experiments)}
    experiments = sorted(rows, key=lambda one: places.get(one.pk, len(places)))
    ctx = {
        "report": report,
        "title": title,
        "text": text,
        "choices": choices,
        "experiments": experiments,
        "panels": [(panel.title, panel.title in choices.charts) for panel in PANELS],
        "trajectories": ", ".join(str(pk) for pk in choices.trajectories),
        "max_trajectories": MAX_TRAJECTORIES,
    }
    return render(request, "reports/form.html", ctx, status=status)
