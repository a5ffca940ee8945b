"""SGLang's Qwen3-VL with the changes of `training.sampler.sglang.served_model`."""

from sglang.srt.models import qwen3_vl, qwen3_vl_moe

from training.sampler.sglang.served_model import SpooledImagesModel


class Qwen3VLForConditionalGeneration(SpooledImagesModel, qwen3_vl.Qwen3VLForConditionalGeneration):
    """The dense sizes."""


class Qwen3VLMoeForConditionalGeneration(SpooledImagesModel, qwen3_vl_moe.Qwen3VLMoeForConditionalGeneration):
    """The mixtures of experts."""


EntryClass = [Qwen3VLForConditionalGeneration, Qwen3VLMoeForConditionalGeneration]
