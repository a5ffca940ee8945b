"""Numbers that are so far from the preset's that a slip is likelier than a decision."""

from collections.abc import Iterator

from training.contracts.config import ExperimentConfig
from training.planning.presets import load_preset
from webapp.analysis.alarms.suspect_settings import differences
from webapp.experiments.knob_values import baseline_of
from webapp.launch.preflight.check import Check

UNUSUAL_RATIO = 10.0


def unusual_values(config: ExperimentConfig, preset: str) -> Iterator[Check]:
    """A warning for each; none without a preset."""
    found = load_preset(preset) if preset else None
    if found is None:
        return
    for one in differences(config, baseline_of(found), "the preset", UNUSUAL_RATIO):
        if one.ratio is not None:
            yield Check("warning", f"Unusual {one.knob.label.lower()}", one.sentence, one.knob.path)
