"""EvoCUA: Qwen3-VL's tool with keys that stay down."""
