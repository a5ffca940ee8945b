"""SGLang's Qwen2.5-VL with the changes of `training.sampler.sglang.served_model`."""

from sglang.srt.models import qwen2_5_vl

from training.sampler.sglang.served_model import SpooledImagesModel


class Qwen2_5_VLForConditionalGeneration(SpooledImagesModel, qwen2_5_vl.Qwen2_5_VLForConditionalGeneration):
    """All sizes."""


EntryClass = Qwen2_5_VLForConditionalGeneration
