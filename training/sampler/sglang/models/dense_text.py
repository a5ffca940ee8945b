"""SGLang's dense text models with the changes of `training.sampler.sglang.served_model`."""

from sglang.srt.models import llama, mistral, qwen2, qwen3

from training.sampler.sglang.served_model import ServedModel


class LlamaForCausalLM(ServedModel, llama.LlamaForCausalLM):
    """Llama, SmolLM2."""


class MistralForCausalLM(ServedModel, mistral.MistralForCausalLM):
    """Mistral."""


class Qwen2ForCausalLM(ServedModel, qwen2.Qwen2ForCausalLM):
    """Qwen2.5."""


class Qwen3ForCausalLM(ServedModel, qwen3.Qwen3ForCausalLM):
    """Qwen3."""


EntryClass = [LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM]
