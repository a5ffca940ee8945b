"""The launch page: presets, the generated form, YAML both ways, pre-flight, launch."""

from collections.abc import Mapping
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.contracts.config import ConfigError, Preset
from training.planning.gpu_layouts import scaled
from training.planning.presets import load_presets
from webapp.accounts.access import MemberRequest, member
from webapp.accounts.form_tokens import once_per_form
from webapp.accounts.models import Role, Team
from webapp.analysis.alarms.remedies import Remedy, note_of, remedy_of
from webapp.analysis.costs.forecast import cost_forecast
from webapp.analysis.verdict.verdict import note_of_run, remedy_of_run, verdict_of
from webapp.experiments.access import get_experiment
from webapp.experiments.installation_limits import limit_problems
from webapp.experiments.knob_values import baseline_of, changed_knobs, flatten
from webapp.experiments.models import CheckpointRecord, Experiment, SavedRewardPreset
from webapp.experiments.queries.checkpoints import config_to_continue
from webapp.experiments.queries.queue import MAX_PRIORITY
from webapp.experiments.stored_config import annotated_yaml
from webapp.launch.form import (
    Draft,
    named_errors,
    read_form,
    read_yaml,
)
from webapp.launch.form_context import form_context
from webapp.launch.preflight.run_preflight import run_preflight
from webapp.launch.preset_and_size_choice import preset_groups, scale_context, scale_note
from webapp.launch.queue_typed import queue_typed
from webapp.launch.saved_rewards import knobs_of, with_saved_preset
from webapp.launch.sweep_form import read_sweep, sweep_context
from webapp.lib.request_values import BadValue, shortened, whole_number
from webapp.sweeps.forecast import sweep_forecast

TASK_KNOBS = ("tasks.task_set", "tasks.revision", "tasks.families", "tasks.levels", "tasks.curriculum")
"""What a link may choose."""
VERDICT = "verdict"
"""In `?remedy=`, where else an alarm is named."""


@require_http_methods(["GET", "POST"])
@once_per_form
def launch(request: MemberRequest) -> HttpResponse:
    """The form; a valid POST queues the experiment, an invalid one shows everything typed again."""
    membership = member(request, Role.OPERATOR)
    sent = request.POST if request.method == "POST" else request.GET
    preset, clone = _starting_point(request, sent)
    baseline = baseline_of(preset)
    ctx: dict[str, Any] = {}
    if request.method == "GET":
        _say_other_preset(request, preset)
        remedy, mended = _remedy(request, clone)
        checkpoint = remedy.checkpoint if remedy else _checkpoint(request, clone)
        sweep = read_sweep({}, None)
        draft = _first_draft(clone, checkpoint, baseline)
        draft.values |= _saved_reward(request, membership.team) | _chosen_tasks(request)
        typed = _first_values(preset, clone, checkpoint)
        if remedy and clone:
            draft.values |= remedy.changes
            typed["note"] = mended["note"]
            ctx |= {"mended": mended, "remedy_changes": remedy.knob_changes(clone.settings)}
    else:
        checkpoint = None
        draft, typed = _read(request, baseline, membership.team), _typed(request.POST)
        sweep = read_sweep(request.POST, draft.config)
        draft.errors |= _errors_of(typed) | sweep.errors
        if draft.config is not None:
            draft.errors |= dict(limit_problems(draft.config, membership.team))
        if not draft.errors and draft.config is not None:
            asked: dict[str, Any] = {
                "team": membership.team,
                "owner": request.user,
                "name": typed["experiment_name"],
                "preset": preset.name if preset else "",
                "config": draft.config,
                "priority": _priority(typed),
                "note": typed["note"],
            }
            return queue_typed(request, asked, sweep.plan, clone)
    ctx |= {
        "preset_groups": preset_groups(preset),
        "preset": preset,
        "scale": scale_context(draft),
        "clone": clone,
        "checkpoint": checkpoint,
        "typed": typed,
        **sweep_context(sweep),
        **form_context(draft, membership.team),
    }
    return render(
        request,
        "experiments/launch.html",
        ctx,
        status=422 if draft.errors and request.method == "POST" else 200,
    )


@require_POST
def launch_preflight(request: MemberRequest) -> HttpResponse:
    """The pre-flight panel for what is typed now, with the errors for the fields."""
    membership = member(request, Role.OPERATOR)
    preset, parent = _starting_point(request, request.POST)
    draft = _read(request, baseline_of(preset), membership.team)
    typed = _typed(request.POST)
    sweep = read_sweep(request.POST, draft.config)
    draft.errors |= _errors_of(typed) | sweep.errors
    found = None
    if draft.config is not None:
        draft.errors |= dict(limit_problems(draft.config, membership.team))
        priority = _priority(typed) if "priority" not in draft.errors else 0
        name = preset.name if preset else ""
        found = run_preflight(draft.config, team=membership.team, preset=name, priority=priority)
    ctx: dict[str, Any] = {"draft": draft, "found": found, "parent": parent}
    if found and draft.config:
        number = sweep.plan.num_experiments if sweep.plan else 1
        ctx["cost"] = cost_forecast(draft.config, number * found.at_most_seconds, membership.team)
        if sweep.plan:
            ctx["sweep"] = sweep_forecast(sweep.plan, found.seconds)
    if parent and draft.config:
        ctx["parent_changes"] = changed_knobs(draft.config, flatten(parent.settings))
    return render(request, "experiments/parts/preflight.html", ctx)


@require_POST
def launch_yaml(request: MemberRequest) -> JsonResponse:
    membership = member(request, Role.OPERATOR)
    preset, _ = _starting_point(request, request.POST)
    draft = read_form(with_saved_preset(request.POST, membership.team), baseline_of(preset))
    return JsonResponse({"yaml": draft.yaml, "errors": draft.errors})


@require_POST
def launch_form(request: MemberRequest) -> HttpResponse:
    """The YAML text as form fields, with its errors beside them: over the preset, or over what is typed."""
    membership = member(request, Role.OPERATOR)
    preset, _ = _starting_point(request, request.POST)
    baseline = baseline_of(preset)
    typed = {path: request.POST.get(path, value) for path, value in baseline.items()}
    over = typed if "over_form" in request.POST else baseline
    draft = read_yaml(request.POST.get("yaml", ""), over, membership.team)
    draft.baseline = baseline
    return render(request, "experiments/parts/knobs.html", form_context(draft, membership.team))


@require_POST
def launch_scale(request: MemberRequest) -> JsonResponse:
    """The form on another row of the table of layouts, everything else as it was typed."""
    membership = member(request, Role.OPERATOR)
    preset, _ = _starting_point(request, request.POST)
    baseline = baseline_of(preset)
    draft = _read(request, baseline, membership.team)
    if draft.config is None:
        return JsonResponse({"note": "Correct the marked fields first."}, status=422)
    size = request.POST.get("scale_size", "")
    gpus = whole_number(request.POST.get("scale_gpus", "") or "0", "scale_gpus")
    try:
        values = scaled(draft.config, size, gpus)
    except ValueError as refused:
        return JsonResponse({"note": str(refused)}, status=422)
    fresh = Draft(values=flatten(values), baseline=baseline)
    html = render_to_string("experiments/parts/knobs.html", form_context(fresh, membership.team), request)
    return JsonResponse({"knobs": html, "note": scale_note(values, size, gpus)})


@require_GET
def experiment_yaml(request: HttpRequest, pk: int) -> HttpResponse:
    """The resolved config as a file."""
    experiment = get_experiment(request, pk)
    text = annotated_yaml(experiment.settings, experiment.config, experiment.config_problems)
    name = f"experiment-{experiment.pk}.yaml"
    return HttpResponse(
        text,
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _read(request: HttpRequest, baseline: dict[str, str], team: Team) -> Draft:
    if request.POST.get("source") == "yaml":
        return read_yaml(request.POST.get("yaml", ""), baseline, team)
    return read_form(with_saved_preset(request.POST, team), baseline)


def _starting_point(
    request: HttpRequest, values: Mapping[str, Any]
) -> tuple[Preset | None, Experiment | None]:
    """The chosen preset (the first one when none is named) and the experiment that is cloned, if any."""
    clone = None
    if cloned := values.get("clone", ""):
        clone = get_experiment(request, whole_number(cloned, "clone"), Role.OPERATOR)
    presets = load_presets()
    wanted = values.get("preset") or (clone.preset if clone else "")
    first = presets[0] if presets and not clone else None
    return next((preset for preset in presets if preset.name == wanted), first), clone


def _say_other_preset(request: HttpRequest, shown: Preset | None) -> None:
    """Of a link to a preset that there is not: what the form holds instead."""
    wanted = request.GET.get("preset", "")
    if wanted and shown and shown.name != wanted:
        messages.warning(request, f"There is no preset {shortened(wanted)}; this is {shown.title}.")


def _checkpoint(request: HttpRequest, clone: Experiment | None) -> CheckpointRecord | None:
    """The checkpoint of `?checkpoint=`, from which the clone shall go on."""
    wanted = request.GET.get("checkpoint", "")
    if clone is None or not wanted:
        return None
    return get_object_or_404(clone.checkpoints, pk=whole_number(wanted, "checkpoint"))


def _remedy(request: HttpRequest, clone: Experiment | None) -> tuple[Remedy | None, dict[str, str]]:
    """The remedy of `?remedy=` (an alarm's name, or "verdict"), and what the clone shall do without."""
    name = request.GET.get("remedy", "")
    if not name or clone is None:
        return None, {}
    if name == VERDICT:
        found = verdict_of(clone)
        about = {"title": found.outcome.label, "since": str(found.since_step or "")}
        url = reverse("experiment-detail", args=[clone.pk])
        return remedy_of_run(clone, found), about | {"url": url, "note": note_of_run(clone, found)}
    alarm = get_object_or_404(clone.alarms, name=name)
    url = reverse("alarm-show", args=[clone.pk, name])
    about = {"title": alarm.guard.title, "since": str(alarm.since_step)}
    return remedy_of(alarm), about | {"url": url, "note": note_of(alarm)}


def _saved_reward(request: HttpRequest, team: Team) -> dict[str, str]:
    """The knobs of `?reward=`, a preset of the reward lab."""
    wanted = request.GET.get("reward", "")
    if not wanted:
        return {}
    rows = SavedRewardPreset.objects.filter(team=team)
    return knobs_of(get_object_or_404(rows, pk=whole_number(wanted, "reward")))


def _chosen_tasks(request: HttpRequest) -> dict[str, str]:
    """Knobs of `?tasks.task_set=` and the like, which the task library links to."""
    wanted = {path: request.GET.get(path, "") for path in TASK_KNOBS}
    return {path: text for path, text in wanted.items() if text}


def _first_draft(
    clone: Experiment | None, checkpoint: CheckpointRecord | None, baseline: dict[str, str]
) -> Draft:
    """The baseline or the clone's settings, with what of them could not be taken over."""
    if clone is None:
        return Draft(values=dict(baseline), baseline=baseline)
    config = config_to_continue(checkpoint) if checkpoint else clone.settings
    lost = ConfigError(clone.config_problems)
    return Draft(values=flatten(config), baseline=baseline, errors=named_errors(lost))


def _first_values(
    preset: Preset | None, clone: Experiment | None, checkpoint: CheckpointRecord | None
) -> dict[str, str]:
    suffix = f"from step {checkpoint.step}" if checkpoint else "clone"
    name = f"{clone.name[:90]} ({suffix})" if clone else preset.title if preset else ""
    return {"experiment_name": name, "note": "", "priority": str(clone.priority if clone else 0)}


def _typed(post: Mapping[str, Any]) -> dict[str, str]:
    names = ("experiment_name", "note", "priority")
    return {name: str(post.get(name, "")).strip() for name in names}


def _errors_of(typed: dict[str, str]) -> dict[str, str]:
    """Problems of what is not part of the config."""
    errors = {}
    longest = cast(int, Experiment._meta.get_field("name").max_length)
    if not typed["experiment_name"]:
        errors["experiment_name"] = "give the experiment a name"
    elif len(typed["experiment_name"]) > longest:
        errors["experiment_name"] = f"at most {longest} characters"
    typed["priority"] = typed["priority"] or "0"
    try:
        _priority(typed)
    except BadValue as error:
        errors["priority"] = error.problem
    return errors


def _priority(typed: dict[str, str]) -> int:
    return whole_number(typed["priority"], "priority", low=-MAX_PRIORITY, high=MAX_PRIORITY)
