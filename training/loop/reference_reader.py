"""What the trainer would make of the eye test's pictures and texts, where nothing is trained."""

from collections.abc import Callable
from pathlib import Path

import torch

from training.batch.samples import Sample
from training.batch.screenshot_cache import ScreenshotCache
from training.contracts.config import ExperimentConfig
from training.contracts.weight_requests import Canary
from training.distributed.world import World
from training.model.cpu_threads import num_threads
from training.model.policy import Policy, load_model
from training.render.renderer import Renderer
from training.update.microbatch_maker import MicroBatchMaker, TokenIds
from training.update.scoring import completion_logprobs
from training.weights.sync import mean_gap

SPARE = 1.2
"""Room for weights, as a multiple of their files."""
AT_WORK = 6e9
"""Bytes for a forward of the longest view."""


def reference_reader(config: ExperimentConfig) -> tuple[Callable[[Canary], float], bool]:
    """(gap to an engine's logprobs in nats, whether on a GPU), of the weights of `model.path`."""
    torch.set_num_threads(num_threads())
    folder = config.model.path
    device = _device(folder)
    renderer = Renderer.from_folder(folder, config.model, config.prompt)
    pixels = ScreenshotCache(renderer)
    model = load_model(folder, torch.device("cpu")).to(device, getattr(torch, config.model.dtype)).eval()
    policy = Policy(
        model,
        temperature=1.0,
        banned_ids=renderer.banned_ids,
        fp32_logits=config.model.fp32_logits,
    ).to(device)
    # One view at a time: there is nothing to pack.
    settings = config.optimiser.model_copy(update={"packing": False})
    tokens = TokenIds(pad=renderer.pad_id, image_pad=renderer.image_pad_id, merge_size=renderer.merge)
    maker = MicroBatchMaker(policy, World(0, 1, device), settings, tokens, pixels)

    def score(sample: Sample) -> list[float]:
        return completion_logprobs(policy, maker, [sample])[0]

    return (lambda canary: mean_gap(canary, score, renderer, pixels)), device.type == "cuda"


def _device(folder: str) -> torch.device:
    """A GPU that has room beside the engine, else the CPU."""
    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info()
        if free > SPARE * sum(path.stat().st_size for path in Path(folder).glob("*.safetensors")) + AT_WORK:
            return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
