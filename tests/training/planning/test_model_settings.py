"""Settings of a config.json that no family computes, or that transformers makes no model of, are named."""

from __future__ import annotations

from typing import Any

import pytest
from transformers.activations import ACT2CLS

from training.planning.model_families import UnsupportedModel, family_of_config
from training.planning.model_settings import ACTIVATIONS

LLAMA = {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 448}
QWEN3_5 = {"model_type": "qwen3_5_text", "num_hidden_layers": 2}
QWEN2_5_VL = {"model_type": "qwen2_5_vl", "hidden_size": 64, "num_attention_heads": 4}
SEEING = QWEN2_5_VL | {"vision_config": {"depth": 1}}
SECTION = {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
MIXTURE = {"model_type": "qwen3_5_moe", "num_experts": 4}
ATTENTION, STATE = "full_attention", "linear_attention"


def rope(kind: str, **values: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10_000.0, **values}}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (LLAMA | {"hidden_size": "64"}, "hidden_size '64', which is no positive number"),
        (LLAMA | {"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        (LLAMA | {"attention_dropout": 0.1}, r"attention_dropout 0\.1: set it to 0"),
        (LLAMA | {"return_dict": False}, "return_dict False: set it to true"),
        (
            LLAMA | {"attn_implementation": "flash_attention_2"},
            "attn_implementation .flash_attention_2.: take it out",
        ),
        (LLAMA | {"rms_norm_eps": 1}, "rms_norm_eps 1, and transformers takes a float"),
        (LLAMA | {"initializer_range": 0}, "initializer_range 0, and transformers takes a float"),
        (LLAMA | {"initializer_range": -0.02}, "initializer_range -0.02, which is below 0"),
        (LLAMA | {"deepstack_visual_indexes": None}, "deepstack_visual_indexes None, and .* takes a list"),
        (LLAMA | {"hidden_act": "gelly"}, "hidden_act 'gelly', which transformers does not know"),
        (LLAMA | {"dtype": "torch.bfloat16"}, "dtype 'torch.bfloat16'"),
        (QWEN2_5_VL | {"vision_config": {"torch_dtype": "auto"}} | SECTION, "torch_dtype 'auto'"),
        (LLAMA | {"text_config": {}}, "text_config, which no llama has: take it out"),
        (LLAMA | {"pad_token_id": 448}, "pad_token_id 448, and vocab_size is 448"),
        (LLAMA | {"num_key_value_heads": 3}, "num_attention_heads 4, which is no multiple of .* 3"),
        (LLAMA | {"layer_types": [STATE, ATTENTION]}, "linear_attention in layer_types.* of llama"),
        (LLAMA | {"layer_types": [ATTENTION]}, "1 layer_types for num_hidden_layers 2"),
        (LLAMA | rope("dynamic", factor=2.0), "rope_parameters of type dynamic"),
        (LLAMA | {"rope_scaling": {"type": "longrope"}}, "rope_scaling of type longrope"),
        (LLAMA | rope("linear"), "rope_parameters of type linear without factor"),
        (LLAMA | rope("llama3", factor=8.0, low_freq_factor=1.0), "without high_freq_factor"),
        (LLAMA | rope("yarn", factor=0), "factor 0, which is no positive number"),
        (LLAMA | rope("yarn", factor=None), "factor None: write max_position_embeddings / original_max"),
        (LLAMA | {"rope_parameters": {ATTENTION: {}}}, "rope_parameters of its own for full_attention"),
        (QWEN3_5 | rope("mrope"), "rope_parameters of type mrope"),
        (QWEN3_5 | rope("default", mrope_section=[1, 1]), "three numbers"),
        (QWEN3_5 | {"full_attention_interval": 0}, "full_attention_interval 0, which is no positive"),
        (QWEN3_5 | {"linear_num_key_heads": 3, "linear_num_value_heads": 4}, "no multiple of linear_num_key"),
        (QWEN3_5 | {"head_dim": None}, "head_dim None"),
        (QWEN2_5_VL | {"vision_config": {"hidden_size": 32, "num_heads": 3}}, "no multiple of num_heads 3"),
        (SEEING, r"mrope_section \[16, 24, 24\], whose sum is not half of a head's 16 numbers"),
        (SEEING | rope("default", mrope_section=[1, 3, 3]), r"mrope_section \[1, 3, 3\], whose sum"),
        (SEEING | rope("default", mrope_section=[-2, 5, 5]), r"\[-2, 5, 5\], with a number below 0"),
        (SEEING | SECTION | {"text_config": {}}, "no text_config: copy it"),
        (QWEN2_5_VL | SECTION | {"vision_config": {}}, "no vision_config: copy it"),
        ({"model_type": "qwen3_vl", "vision_config": {"depth": 1}, "hidden_size": 64}, "no text_config"),
        (MIXTURE | {"num_experts_per_tok": 9}, "num_experts_per_tok 9, and num_experts is 4"),
        (MIXTURE | {"output_router_logits": True}, "output_router_logits True: set it to false"),
        (LLAMA | rope("default", mrope_section=3), "mrope_section 3: three numbers"),
        (LLAMA | rope("default", mrope_section="abc"), "mrope_section 'abc': three numbers"),
        (LLAMA | {"rope_scaling": "yarn"}, "rope_scaling 'yarn', which is no mapping"),
        (LLAMA | {"layer_types": [[1], [2]]}, "a value of another kind"),
        (LLAMA | {"num_hidden_layers": 10**10}, "num_hidden_layers 10000000000, and no model here has more"),
        (SEEING | SECTION | {"vision_config": {"depth": 10**10}}, "depth 10000000000"),
        ({"model_type": "mistral"}, "sliding windows"),
        ({"model_type": "mistral", "sliding_window": 4096}, "sliding windows"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "sliding windows"),
        ({"model_type": "qwen3", "layer_types": ["sliding_attention"]}, "sliding windows"),
    ],
)
def test_a_setting_that_cannot_be_trained_is_named_with_its_key(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnsupportedModel, match=f"^{config['model_type']}: config.json has .*{problem}"):
        family_of_config(config)


@pytest.mark.parametrize(
    "config",
    [
        LLAMA | {"head_dim": None, "num_key_value_heads": None, "pad_token_id": -1},
        LLAMA | rope("yarn", factor=2.0),
        LLAMA | {"attn_implementation": "eager", "attention_dropout": None},
        QWEN3_5 | {"layer_types": None} | rope("default", partial_rotary_factor=0.5),
        SEEING | SECTION,
        SEEING | {"hidden_size": 512},
        {"model_type": "mistral", "sliding_window": None},
        {"model_type": "qwen2", "use_sliding_window": True, "layer_types": [ATTENTION]},
    ],
)
def test_what_transformers_trains_is_taken(config: dict[str, Any]) -> None:
    assert config["model_type"] in family_of_config(config).model_types


def test_activations_are_those_of_transformers() -> None:
    assert sorted(ACTIVATIONS) == sorted(ACT2CLS)
