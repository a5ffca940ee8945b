"""What the knobs of the launch form show: sections, marks, choices and suggestions."""

from typing import Any

from training.planning.model_folders import TINY_RANDOM
from webapp.accounts.models import Team
from webapp.experiments.knobs import ESSENTIAL, layers
from webapp.experiments.model_folders import SHIPPED_MODELS
from webapp.experiments.models import CheckpointRecord, TaskSet
from webapp.experiments.queries.reward_presets import preset_names
from webapp.launch.form import Draft
from webapp.launch.saved_rewards import PRESET

MAX_SUGGESTIONS = 20


def form_context(draft: Draft, team: Team) -> dict[str, Any]:
    """What `knobs.html` shows: every section with its fields' texts, marks and errors."""
    shown = []
    presets = preset_names(team)
    if (chosen := draft.values[PRESET]) not in presets:  # of a clone of an old run
        presets.append(chosen)
    for section in layers():
        fields = [
            {
                "knob": knob,
                "value": draft.values[knob.path],
                "choices": presets if knob.path == PRESET else knob.choices,
                "baseline": draft.baseline[knob.path],
                "is_changed": draft.values[knob.path] != draft.baseline[knob.path],
                "error": draft.errors.get(knob.path, ""),
            }
            for knob in section.knobs
        ]
        num_changed = sum(bool(item["is_changed"]) for item in fields)
        has_error = any(item["error"] for item in fields)
        shown.append(
            {
                "section": section,
                "fields": fields,
                "num_changed": num_changed,
                "has_error": has_error,
                "is_essential": section.name == ESSENTIAL,
                "is_open": section.name == ESSENTIAL or has_error or bool(num_changed),
            }
        )
    return {
        "draft": draft,
        "shown": shown,
        "is_yaml": draft.source == "yaml",
        "suggestions": _suggestions(team),
    }


def _suggestions(team: Team) -> dict[str, list[str]]:
    """Dotted name -> values worth offering: shipped models, kept checkpoints, imported task sets."""
    shipped = sorted(folder.parent.name for folder in SHIPPED_MODELS.glob("*/config.json"))
    kept = CheckpointRecord.objects.filter(experiment__team=team, deleted_at=None).order_by("-is_best", "-id")
    models = [*shipped, TINY_RANDOM, *kept.values_list("path", flat=True)[:MAX_SUGGESTIONS]]
    return {
        "model.path": models,
        "algorithm.reference_path": models,
        "tasks.task_set": list(TaskSet.objects.listed(team).values_list("name", flat=True)),
    }
