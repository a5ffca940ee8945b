"""Makes a tiny Qwen3-VL checkpoint folder with random weights.

The folder holds everything that a hub checkpoint holds (config, weights, Qwen2 tokenizer with
Qwen's special tokens, chat template, image processor settings) and is loaded by the same
`from_pretrained` calls. Only the sizes are small: about 0.9 million parameters.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex as TokenizerRegex
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForImageTextToText,
    PreTrainedModel,
    Qwen2Tokenizer,
    Qwen3VLConfig,
    Qwen3VLMoeConfig,
)
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from training.content.recipes.tiny.tokenizer_corpus import corpus

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}{{ '<|vision_start|><|image_pad|><|vision_end|>' }}"
    "{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}"
    "{{ '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TinySizes:
    """Dimensions of the tiny model."""

    text_layers: int = 2
    text_hidden: int = 128
    text_intermediate: int = 384
    text_heads: int = 4
    text_head_width: int = 0
    """0 = text_hidden / text_heads."""
    experts: int = 0
    """Per block, each `expert_intermediate` wide; 0 = dense."""
    expert_intermediate: int = 96
    experts_per_token: int = 2
    vision_layers: int = 2
    vision_hidden: int = 64
    vision_intermediate: int = 256
    vision_heads: int = 4
    patch_size: int = 16
    """Pixels; one image token covers patch_size * 2 squared pixels."""
    position_side: int = 16
    """The learned position table is position_side x position_side."""
    vocabulary: int = 704
    """Upper limit before padding to 64; 256 are bytes."""
    initializer_range: float = 0.07
    """Far above the usual 0.02: a 128-wide model leaves its plateau sooner."""
    position_scale: float = 0.2
    """Amplitude of the 2-D sin-cos start of the learned position table."""


def make_tiny(folder: Path, *, seed: int = 0, sizes: TinySizes | None = None) -> Path:
    """Write a random tiny Qwen3-VL to `folder` (created) and return it. Same seed, same bytes."""
    sizes = sizes or TinySizes()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(sizes.vocabulary)
    tokenizer.save_pretrained(folder)
    config = make_config(tokenizer, sizes)
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = AutoModelForImageTextToText.from_config(config)
    torch.random.set_rng_state(state)
    start_positions(model, sizes)
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids("<|im_end|>")
    model.generation_config.pad_token_id = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    model.save_pretrained(folder)
    write_processor_files(folder, sizes)
    return folder


def make_tokenizer(vocabulary: int) -> Qwen2Tokenizer:
    """A Qwen2 tokenizer (byte-level BPE, digits one by one) trained on our own corpus."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(TokenizerRegex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trained.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        min_frequency=1,
    )
    trained.train_from_iterator(corpus(), trainer)
    model = json.loads(trained.to_str())["model"]
    # Its annotation says pairs of one string each; what it takes are pairs of tokens.
    merges: Any = [tuple(merge) for merge in model["merges"]]
    tokenizer = Qwen2Tokenizer(
        vocab=model["vocab"],
        merges=merges,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL_TOKENS),
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def token_id(tokenizer: Qwen2Tokenizer, token: str) -> int:
    """Of a special token."""
    found = tokenizer.convert_tokens_to_ids(token)
    assert isinstance(found, int)
    return found


def make_config(tokenizer: Qwen2Tokenizer, sizes: TinySizes) -> Qwen3VLConfig | Qwen3VLMoeConfig:
    """The architecture; the vocabulary is padded to a multiple of 64."""
    head_dim = sizes.text_head_width or sizes.text_hidden // sizes.text_heads
    side = head_dim // 2
    section = [side - 2 * (side * 3 // 8), side * 3 // 8, side * 3 // 8]
    text = {
        "vocab_size": -(-len(tokenizer) // 64) * 64,
        "hidden_size": sizes.text_hidden,
        "intermediate_size": sizes.text_intermediate,
        "num_hidden_layers": sizes.text_layers,
        "num_attention_heads": sizes.text_heads,
        "num_key_value_heads": sizes.text_heads,
        "head_dim": head_dim,
        "max_position_embeddings": 8192,
        "initializer_range": sizes.initializer_range,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "mrope_section": section,
            "mrope_interleaved": True,
        },
        "tie_word_embeddings": True,
    }
    if sizes.experts:
        text |= {
            "num_experts": sizes.experts,
            "num_experts_per_tok": sizes.experts_per_token,
            "moe_intermediate_size": sizes.expert_intermediate,
        }
    vision = {
        "depth": sizes.vision_layers,
        "hidden_size": sizes.vision_hidden,
        "intermediate_size": sizes.vision_intermediate,
        "num_heads": sizes.vision_heads,
        "patch_size": sizes.patch_size,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": sizes.text_hidden,
        "num_position_embeddings": sizes.position_side**2,
        "deepstack_visual_indexes": [0],
        "initializer_range": sizes.initializer_range,
    }
    family = Qwen3VLMoeConfig if sizes.experts else Qwen3VLConfig
    return family(
        text_config=text,
        vision_config=vision,
        image_token_id=token_id(tokenizer, "<|image_pad|>"),
        video_token_id=token_id(tokenizer, "<|video_pad|>"),
        vision_start_token_id=token_id(tokenizer, "<|vision_start|>"),
        vision_end_token_id=token_id(tokenizer, "<|vision_end|>"),
        tie_word_embeddings=True,
    )


def start_positions(model: PreTrainedModel, sizes: TinySizes) -> None:
    """Overwrite the learned vision position table with 2-D sines and cosines."""
    table = model.model.visual.pos_embed.weight
    quarter = table.shape[1] // 4
    frequencies = torch.exp(-torch.arange(quarter) * (4.0 / quarter))
    steps = torch.arange(sizes.position_side).float()
    waves = torch.cat([(steps[:, None] * frequencies).sin(), (steps[:, None] * frequencies).cos()], dim=1)
    rows = waves[:, None].expand(-1, sizes.position_side, -1)
    columns = waves[None].expand(sizes.position_side, -1, -1)
    with torch.no_grad():
        table.copy_(sizes.position_scale * torch.cat([rows, columns], dim=-1).reshape(table.shape))


def write_processor_files(folder: Path, sizes: TinySizes) -> None:
    """The image and video processor settings that a hub checkpoint carries."""
    common = {
        "patch_size": sizes.patch_size,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "size": {"shortest_edge": 1024, "longest_edge": 49152},
    }
    image = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen3VLProcessor", **common}
    video = {"video_processor_type": "Qwen3VLVideoProcessor", "processor_class": "Qwen3VLProcessor", **common}
    (folder / "preprocessor_config.json").write_text(json.dumps(image, indent=2) + "\n")
    (folder / "video_preprocessor_config.json").write_text(json.dumps(video, indent=2) + "\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.content.recipes.tiny.make_checkpoint",
        description="Make a tiny random Qwen3-VL",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    make_tiny(options.folder, seed=options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
