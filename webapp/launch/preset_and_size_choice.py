"""What the launch page shows above the form: presets by purpose, and the choice of model size and GPUs."""

from collections.abc import Mapping
from typing import Any

from training.contracts.config import ConfigError, Preset, parse_config
from training.planning.gpu_layouts import GPU_BYTES, GPU_COUNTS, GPU_WORDS, LAYOUTS, MODELS
from training.planning.memory_footprint import footprint
from training.planning.presets import GROUPS, load_presets
from webapp.experiments.knob_values import nested
from webapp.launch.form import Draft
from webapp.lib.byte_text import size_text

AS_IS = "Choosing sets model, layout, engine and packing in the form; the algorithm stays."


def preset_groups(current: Preset | None) -> list[dict[str, Any]]:
    """Presets by GROUPS; the first group is open when no preset is chosen."""
    presets = load_presets()
    chosen = current.group if current and current.group in GROUPS else next(iter(GROUPS))
    return [
        {
            "key": key,
            "title": title,
            "text": text,
            "presets": [preset for preset in presets if preset.group == key],
            "is_current": key == chosen,
        }
        for key, (title, text) in GROUPS.items()
    ]


def scale_context(draft: Draft) -> dict[str, Any] | None:
    """The two choices with what the form stands on now; None for models that are no published Qwen3-VL."""
    path = draft.values.get("model.path", "")
    size = next((size for size in MODELS if f"Qwen3-VL-{size}-" in path), "")
    if not size:
        return None
    gpus = next((count for count in GPU_COUNTS if is_on_row(draft.values, size, count)), 0)
    return {
        "sizes": list(MODELS),
        "counts": GPU_COUNTS,
        "size": size if gpus else "",
        "gpus": gpus,
        "note": scale_note(nested(draft.values), size, gpus) if gpus else AS_IS,
    }


def is_on_row(values: Mapping[str, str], size: str, gpus: int) -> bool:
    """True when the form's texts are laid out as the row says."""
    row = LAYOUTS[size, gpus]
    wanted = {
        "engine.name": "sglang",
        "engine.placement": "colocated" if row.is_colocated else "own",
        "engine.servers": str(row.servers),
        "engine.gpus_per_server": str(row.gpus_per_server),
        "optimiser.num_processes": str(row.trainers),
        "lora.rank": str(row.lora_rank),
        "parallel.cpu_offload": str(row.cpu_offload).lower(),
    }
    return all(values.get(path) == text for path, text in wanted.items())


def scale_note(values: dict[str, Any], size: str, gpus: int) -> str:
    """The row in words with its estimate, or why the preset cannot stand on it."""
    words = LAYOUTS[size, gpus].words()
    try:
        found = footprint(parse_config(values), MODELS[size], GPU_BYTES)
    except ConfigError as error:
        return f"{words}. This does not go with the rest: {error}"
    host = f", {size_text(found.host)} in host memory" if found.host else ""
    return f"{words}. About {size_text(found.per_gpu)} of {GPU_WORDS} per GPU{host}."
