"""What the experiment page fetches after its first load: parts as HTML, metrics and log lines as JSON."""

import math

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import MemberRequest
from webapp.analysis.alarms.thresholds import alarm_marks
from webapp.analysis.series.chart_panels import panels_of
from webapp.analysis.series.gpu_use import gpu_history
from webapp.analysis.series.metric_series import evaluation_points, series_of, whole_series
from webapp.experiment_pages.chart_markers import markers_of
from webapp.experiment_pages.part_contexts import PARTS, context_of
from webapp.experiments.access import get_experiment
from webapp.experiments.log_files import first_error, log_path, read_chunk
from webapp.experiments.queries.evaluations import all_evaluations
from webapp.lib.request_values import BadValue, check_text, whole_number

MAX_WHOLE_SERIES = 2


@require_safe
def part(request: MemberRequest, pk: int, name: str) -> HttpResponse:
    """One part as it stands now: the same template as on first load."""
    experiment = get_experiment(request, pk)
    if name not in PARTS:
        raise Http404(f"no part {name!r}")
    ctx = {"experiment": experiment, "tab": request.GET.get("tab", "overview")}
    ctx |= context_of(name, experiment, request)
    return render(request, f"experiments/parts/{name}.html", ctx)


def _as_json(values: dict[str, list[float]]) -> dict[str, list[float | None]]:
    """JSON has no NaN; a gap in the line says the same."""
    return {
        axis: [number if math.isfinite(number) else None for number in numbers]
        for axis, numbers in values.items()
    }


@require_safe
def metrics(request: MemberRequest, pk: int) -> JsonResponse:
    """Panels, evaluations, alarms, markers, and the series from `from_step` on, thinned; or, with one `name`
    or two, just these series with all their points."""
    experiment = get_experiment(request, pk)
    from_step = whole_number(request.GET.get("from_step", "0"), "from_step")
    if names := request.GET.getlist("name"):
        series = whole_series(experiment, _series_names(names))
        return JsonResponse({"series": {name: _as_json(values) for name, values in series.items()}})
    series, evaluations = series_of(experiment, from_step), all_evaluations(experiment)
    return JsonResponse(
        {
            "panels": panels_of(experiment),
            "evaluations": evaluation_points(evaluations),
            "markers": markers_of(experiment, evaluations, series, from_step),
            "alarms": alarm_marks(experiment),
            "series": {name: _as_json(values) for name, values in series.items()},
            "from_step": from_step,
        }
    )


def _series_names(names: list[str]) -> list[str]:
    if len(names) > MAX_WHOLE_SERIES:
        raise BadValue("name", f"at most {MAX_WHOLE_SERIES} whole series, these are {len(names)}")
    for name in names:
        check_text(name, "name")
    return names


@require_safe
def gpu_series(request: MemberRequest, pk: int) -> JsonResponse:
    """Utilisation and memory of GPUs and processes over time."""
    return JsonResponse(gpu_history(get_experiment(request, pk)))


@require_safe
def log_lines(request: MemberRequest, pk: int) -> JsonResponse:
    """Lines of one file: its tail, from byte `after` on, or `at=first-error`, searched for from `after` on.

    A search that is not at the end after some time answers `searched`, from where it is asked to go on.
    """
    experiment = get_experiment(request, pk)
    path = log_path(experiment.pk, request.GET.get("file", ""))
    if path is None:
        return JsonResponse({"error": {"code": "not_found", "message": "no such log file"}}, status=404)
    after = request.GET.get("after", "")
    start = whole_number(after, "after") if after else None
    if request.GET.get("at") == "first-error":
        search = first_error(path, start or 0)
        if search.start is None:
            num_bytes = path.stat().st_size
            searched = None if search.is_whole else search.end
            return JsonResponse({"found": False, "searched": searched, "num_bytes": num_bytes})
        start = search.start
    chunk = read_chunk(path, start)
    answer = {
        "lines": chunk.lines,
        "start": chunk.start,
        "end": chunk.end,
        "num_bytes": chunk.num_bytes,
        "found": True,
    }
    return JsonResponse(answer, json_dumps_params={"ensure_ascii": False, "separators": (",", ":")})
