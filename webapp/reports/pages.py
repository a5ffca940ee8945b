"""What shows a version, to the team and to strangers alike: page, picture, export."""

from typing import Any

from django.core.files.storage import default_storage
from django.http import Http404, HttpResponse
from django.utils.text import slugify

from webapp.reports.exports import FORMATS, exported, find_block
from webapp.reports.frozen_content import picture_path
from webapp.reports.markdown import as_html
from webapp.reports.models import ReportVersion

CHART_DATA = ("key", "title", "unit", "kind", "lines", "evaluations")


def version_context(version: ReportVersion) -> dict[str, Any]:
    """What `reports/parts/version.html` shows; nothing but what was frozen."""
    content = version.content
    return {
        "version": version,
        "html": as_html(version.text),
        "tables": content["tables"],
        "trajectories": content["trajectories"],
        "charts": content["charts"],
        "chart_data": [{name: chart[name] for name in CHART_DATA} for chart in content["charts"]],
    }


def picture(version: ReportVersion, sha256: str) -> HttpResponse:
    """One of the version's own pictures; 404 for every other."""
    name = picture_path(version, sha256)
    if not default_storage.exists(name):
        raise Http404("No such picture in this report.")
    with default_storage.open(name, "rb") as file:
        return HttpResponse(file.read(), content_type="image/jpeg")


def export(version: ReportVersion, key: str, kind: str) -> HttpResponse:
    """A chart or table as a file."""
    block = find_block(version.content, key)
    if block is None or kind not in FORMATS:
        raise Http404("No such chart or table in this report.")
    response = HttpResponse(exported(block, kind), content_type=FORMATS[kind])
    name = slugify(f"report-{version.report_id}-{version.number}-{block['title']}")
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return response
