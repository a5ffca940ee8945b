"""Applies `training.sampler.sglang.adapter_release` where SGLang imports its processors: once per server."""

from sglang.srt.managers.tokenizer_manager import TokenizerManager

from training.sampler.sglang.adapter_release import release_on_abort

release_on_abort(TokenizerManager)
