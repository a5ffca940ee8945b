"""One update of every family in every layout, by the trainer and by transformers with the formulas alone."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testing.training.recorded_samples import record_samples
from testing.training.tiny_families import make_family
from testing.training.toy_desktops import ToyDesktops
from testing.training.update_probe import RATE, by_formula, differences
from training.batch.samples import Sample, share_counts
from training.contracts.config import ExperimentConfig, parse_config, to_yaml
from training.render.renderer import Renderer
from training.sampler.engines.transformers_engine import TransformersEngine

LAYOUTS: dict[str, dict[str, dict[str, Any]]] = {
    "padded": {},
    "packed": {
        "optimiser": {"packing": True, "microbatch_tokens": 200, "microbatch_patches": 200},
        "parallel": {"activation_checkpointing": True, "recomputed_share": 0.5},
    },
    "adapters": {
        "optimiser": {"packing": True, "microbatch_tokens": 200, "microbatch_patches": 200},
        "lora": {"rank": 4, "alpha": 8},
    },
}


def family_config(model: Path, **sections: dict[str, Any]) -> ExperimentConfig:
    """A step of plain GRPO whose loss the formulas know."""
    values: dict[str, dict[str, Any]] = {
        "model": {"path": str(model), "max_pixels": 12288},
        "sampling": {"max_completion_tokens": 6, "temperature": 0.8},
        "algorithm": {"group_size": 4, "groups_per_step": 2, "aggregation": "trajectory_mean"},
        "optimiser": {"learning_rate": RATE, "microbatch_size": 3, "max_grad_norm": 1e9},
    }
    return parse_config(
        {name: values.get(name, {}) | sections.get(name, {}) for name in {*values, *sections}}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A tiny model of one family, and what its engine sampled."""

    model_type: str
    model: Path
    folder: Path
    """With the frames and NAME.yaml, NAME.pickle of every layout, for `testing.training.update_probe`."""
    engine: TransformersEngine
    renderer: Renderer
    samples: list[Sample]

    def name(self, layout: str) -> str:
        """Of a layout's files."""
        return f"{self.model_type} {layout}"

    def gap(self, layout: str, found: dict[str, Any]) -> tuple[float, float]:
        """(|loss|, max |gradient|) between the trainer's update and the formulas'."""
        expected = by_formula(self.folder, self.name(layout))
        if layout == "adapters":
            expected = as_adapters(found, expected)
        return differences(found, expected)


def as_adapters(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """What an update of the whole weights means for adapters that begin at B = 0: dB = scale dW A^T."""
    weights, start = {}, {}
    for name, weight in found["weights"].items():
        layer, _, part = name.partition(".lora_")
        plain = f"{layer}.weight" if part else name.replace(".base_layer.", ".")
        if part.startswith("B"):
            moved = expected["weights"][plain] - expected["start"][plain]
            down = found["weights"][f"{layer}.lora_A.default.weight"].double()
            start[name] = weight.double() * 0
            weights[name] = 2.0 * moved @ down.T
        else:
            start[name] = weights[name] = weight.double() if part else expected["start"][plain]
    return expected | {"weights": weights, "start": start}


def sampled_family(folder: Path, model_type: str) -> Family:
    """Made, sampled from and written down."""
    model = make_family(folder / "models" / model_type, model_type)
    config = family_config(model)
    renderer = Renderer.from_folder(model, config.model, config.prompt)
    engine = TransformersEngine(model, renderer, seed=1)
    desktops = ToyDesktops(engine=engine, renderer=renderer, frames=folder / "frames")
    samples = share_counts(record_samples(desktops))
    family = Family(
        model_type=model_type, model=model, folder=folder, engine=engine, renderer=renderer, samples=samples
    )
    for layout, sections in LAYOUTS.items():
        (folder / f"{family.name(layout)}.yaml").write_text(to_yaml(family_config(model, **sections)))
        (folder / f"{family.name(layout)}.pickle").write_bytes(pickle.dumps(samples))
    return family
