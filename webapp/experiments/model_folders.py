"""How much memory an experiment will need, by a formula that the page shows.

    weights      P x b                       P parameters, b bytes of the compute type
    gradients    P x 4                       float32
    optimiser    P x 8                       AdamW: two float32 moments (Muon needs less)
    policy       P x b                       the policy server's own copy
    reference    P x b                       with a KL reference only
    activations  m x T x L x H x 16 x b      m trajectories of T tokens, L layers of width H, about 16
                                             tensors of that width kept per layer
    logits       m x T x V x 8               V entries of vocabulary, float32, with their gradient

T is the context limit: the estimate is an upper bound. Weights, gradients and optimiser are split over the
trainer's processes; the figures are the sums over all of them.
"""

import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from django.conf import settings

from training.config import ExperimentConfig

BYTES = {"float32": 4, "bfloat16": 2}
KEPT_PER_LAYER = 16
SHIPPED_MODELS = Path(settings.BASE_DIR) / "training" / "checkpoints_shipped"
MAX_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the formula needs of a checkpoint folder."""

    num_parameters: int
    num_layers: int
    width: int
    vocabulary: int


TINY_RANDOM = "tiny-random"
"""The model.path that the gpu worker makes by itself, from the experiment's seed."""
TINY_FACTS = ModelFacts(num_parameters=900_000, num_layers=2, width=128, vocabulary=704)


def model_folder(path: str) -> Path | None:
    """The checkpoint folder that `model.path` names, found as the gpu worker does; None if absent."""
    if not path.strip():
        return None
    for candidate in (SHIPPED_MODELS / path, Path(path).expanduser(), Path(settings.DATA_DIR) / path):
        for folder in (candidate, candidate / "model"):  # a checkpoint holds its model in a folder of its own
            if (folder / "config.json").is_file():
                return folder.resolve()
    return None


def model_facts(folder: Path) -> ModelFacts:
    """Sizes from config.json and the weight files' headers. Raises ValueError for an unreadable folder."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'} is not JSON: {error}") from error
    text = config.get("text_config", config)
    counted = sum(_parameters_in(file) for file in sorted(folder.glob("*.safetensors")))
    return ModelFacts(
        num_parameters=counted or _estimated_parameters(text),
        num_layers=int(text.get("num_hidden_layers", 0)),
        width=int(text.get("hidden_size", 0)),
        vocabulary=int(text.get("vocab_size", 0)),
    )


def _parameters_in(file: Path) -> int:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"{file} is not a safetensors file")
        header: dict[str, Any] = json.loads(stream.read(length))
    return sum(prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")


def _estimated_parameters(text: dict[str, Any]) -> int:
    """For a folder without weights: attention 4 H^2 and MLP 3 H I per layer, and the embedding."""
    width, inner = int(text.get("hidden_size", 0)), int(text.get("intermediate_size", 0))
    layer = 4 * width * width + 3 * width * inner
    return int(text.get("num_hidden_layers", 0)) * layer + int(text.get("vocab_size", 0)) * width


def footprint(config: ExperimentConfig, facts: ModelFacts) -> dict[str, int]:
    """Part -> bytes, in the order of the module's formula."""
    num_bytes = BYTES[config.model.dtype]
    parameters = facts.num_parameters
    tokens = min(
        config.optimiser.microbatch_size, config.algorithm.group_size * config.algorithm.groups_per_step
    )
    tokens *= config.sampling.max_context_tokens
    parts = {
        "weights": parameters * num_bytes,
        "gradients": parameters * 4,
        "optimiser": parameters * 8,
        "policy server": parameters * num_bytes,
        "reference": parameters * num_bytes if config.algorithm.kl_coefficient > 0 else 0,
        "activations": tokens * facts.num_layers * facts.width * KEPT_PER_LAYER * num_bytes,
        "logits": tokens * facts.vocabulary * 8,
    }
    return {name: value for name, value in parts.items() if value}
