"""Whether a folder's image processor cuts screenshots as its vision tower reads them; read without torch."""

from pathlib import Path

from training.planning.model_json import read_object, vision_part

FILE, NESTED = "preprocessor_config.json", "processor_config.json"
DEFAULTS = {"patch_size": 14, "merge_size": 2, "temporal_patch_size": 2}
"""Of the processor in transformers, for keys that its file leaves out."""
TOWER_KEYS = {"merge_size": "spatial_merge_size"}
"""How config.json names what it does not name alike."""


def image_problem(folder: Path) -> str | None:
    """What is wrong, in words; None = nothing. Raises ValueError and OSError."""
    nested = folder / NESTED
    settings = read_object(nested).get("image_processor") if nested.is_file() else None
    path = nested if isinstance(settings, dict) else folder / FILE
    if not isinstance(settings, dict):
        if not path.is_file():
            return f"{folder} has no {FILE}: copy it there from where the model was published"
        settings = read_object(path)
    tower = vision_part(read_object(folder / "config.json"))
    for key, default in DEFAULTS.items():
        name = TOWER_KEYS.get(key, key)
        found, wanted = settings.get(key, default), tower.get(name)
        if wanted is not None and found != wanted:
            return (
                f"{path} has {key} {found}, and {name} of vision_config in config.json is {wanted}: take the "
                f"{FILE} that was published with the model"
            )
    return None
