"""The budgets of a context: all tokens, words, and image pads."""

from training.contracts.config import SamplingConfig


def over_budget(images: int, text: int, limits: SamplingConfig) -> str | None:
    """Which budget `images` pads and `text` other tokens exceed, in words; None when they fit all."""
    for name, count, limit, what in (
        ("max_context_tokens", images + text, limits.max_context_tokens, "tokens"),
        ("max_text_tokens", text, limits.max_text_tokens or text, "tokens of text"),
        ("max_image_tokens", images, limits.max_image_tokens or images, "image pads"),
    ):
        if count > limit:
            return f"{count} {what} do not fit sampling.{name} = {limit}"
    return None
