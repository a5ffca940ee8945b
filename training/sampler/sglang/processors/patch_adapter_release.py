"""Applies `training.sampler.sglang.adapter_release_patch` where SGLang imports processors: once a server."""

from sglang.srt.managers.tokenizer_manager import TokenizerManager

from training.sampler.sglang.adapter_release_patch import release_on_abort

release_on_abort(TokenizerManager)
