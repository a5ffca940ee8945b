"""What transformers computes of an exported folder on a CPU, as one JSON line.

    python -P testing/training/transformers_logprobs.py FOLDER DTYPE TEXT ASKED [PICTURE ...]

SGLang's interpreter runs it, so that both read the folder by one transformers: it imports nothing of ours.
`exact` is fp32; `rounded` is the same weights computed in DTYPE, which says what rounding alone moves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer


def main(folder: str, dtype: str, text: str, asked: str, *pictures: str) -> None:
    config = json.loads((Path(folder) / "config.json").read_text())
    auto: Any = AutoModelForImageTextToText if "vision_config" in config else AutoModelForCausalLM
    models = {
        name: auto.from_pretrained(folder, dtype=one).eval()
        for name, one in {"exact": "float32", "rounded": dtype}.items()
    }
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text)["input_ids"]
    answer: dict[str, Any] = {"ids": ids}
    answer |= {name: of_next_tokens(model, ids) for name, model in models.items()}
    answer["other_start"] = of_next_tokens(models["exact"], [ids[-1], *ids[1:]])
    if pictures:
        answer["vocabulary"] = [tokenizer.decode([token]) for token in range(len(tokenizer))]
        answer["pictures"] = read_pictures(folder, models, asked, pictures)
    sys.stdout.write(f"answer {json.dumps(answer)}\n")


def of_next_tokens(model: Any, ids: list[int]) -> list[float]:
    """Logprobs of all tokens but the first."""
    tokens = torch.tensor([ids])
    with torch.no_grad():
        logprobs = model(input_ids=tokens).logits[0, :-1].float().log_softmax(-1)
    return logprobs.gather(1, tokens[0, 1:, None])[:, 0].tolist()


def read_pictures(
    folder: str, models: dict[str, Any], asked: str, pictures: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Logprobs of every token as the first of an answer.

    `one_row` is fp32 with positions of one row: every token of a picture stands at the same height and width.
    """
    processor = AutoProcessor.from_pretrained(folder)
    prompts = [_prompt(processor, picture, asked) for picture in pictures]
    found = [{"prompt_tokens": prompt["input_ids"].shape[1]} for prompt in prompts]
    for name, model in models.items():
        for one, prompt in zip(found, prompts, strict=True):
            one[name] = _of_first_token(model, prompt)
    exact = models["exact"]
    whole = exact.model.get_rope_index

    def one_row(*arguments: Any, **keywords: Any) -> Any:
        positions, deltas = whole(*arguments, **keywords)
        return positions[:1].expand_as(positions), deltas

    exact.model.get_rope_index = one_row
    for one, prompt in zip(found, prompts, strict=True):
        one["one_row"] = _of_first_token(exact, prompt)
    return found


def _prompt(processor: Any, picture: str, asked: str) -> Any:
    parts = [{"type": "image", "image": Image.open(picture)}, {"type": "text", "text": asked}]
    return processor.apply_chat_template(
        [{"role": "user", "content": parts}],
        tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True,
    )  # fmt: skip


def _of_first_token(model: Any, prompt: Any) -> list[float]:
    with torch.no_grad():
        logits = model(**prompt.to(model.dtype), use_cache=False).logits[0, -1]
    return logits.float().log_softmax(-1).tolist()


if __name__ == "__main__":
    main(*sys.argv[1:])
