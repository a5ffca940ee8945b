"""SGLang's Qwen3.5 with the changes of `training.sampler.sglang.served_model`."""

from sglang.srt.models import qwen3_5

from training.sampler.sglang.served_model import SpooledImagesModel


class Qwen3_5ForConditionalGeneration(SpooledImagesModel, qwen3_5.Qwen3_5ForConditionalGeneration):
    """The dense sizes."""


class Qwen3_5MoeForConditionalGeneration(SpooledImagesModel, qwen3_5.Qwen3_5MoeForConditionalGeneration):
    """The mixtures of experts."""


EntryClass = [Qwen3_5ForConditionalGeneration, Qwen3_5MoeForConditionalGeneration]
