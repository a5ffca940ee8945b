"""Stock SGLang serves an export as it is: a chat with a PNG is answered as transformers answers it.

    python -m pytest -m gpu tests/training/checkpoints/test_export_in_sglang.py

First desk's answers, and the logprobs of a random model of every family: `testing.training.sglang_exports`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageDraw

from testing.paths import REPOSITORY
from testing.training.sglang_exports import (
    ASKED,
    SERVED,
    chat,
    faults,
    make_export,
    measured,
    run_reference,
    served,
)
from training.checkpoints.export import Dtype, export_checkpoint
from training.sampler.engine import EngineError
from training.sampler.sglang.server_arguments import SglangInstallation

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
FIRST_DESK = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"
PLACES = ((60, 70), (380, 290))
"""Of the red button. First desk's start sees the difference: it answers 140,200 and 140,510."""
MAX_TOKENS = 32
CLEAR = 0.5
"""Nats between the best token and the next one: far above what rounding moves."""
REFERENCE = """
import json, sys
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor
folder, asked, max_tokens, *pictures = sys.argv[1:]
processor = AutoProcessor.from_pretrained(folder)
model = AutoModelForImageTextToText.from_pretrained(folder, dtype="float32")
for picture in pictures:
    parts = [{"type": "image", "image": Image.open(picture)}, {"type": "text", "text": asked}]
    prompt = processor.apply_chat_template(
        [{"role": "user", "content": parts}], tokenize=True, return_dict=True, return_tensors="pt",
        add_generation_prompt=True,
    )
    found = model.generate(
        **prompt, max_new_tokens=int(max_tokens), do_sample=False, output_logits=True,
        return_dict_in_generate=True,
    )
    num_prompt = prompt["input_ids"].shape[1]
    ids = found.sequences[0, num_prompt:]
    logprobs = torch.stack(found.logits)[:, 0].float().log_softmax(-1)
    best = logprobs.topk(2).values
    print("answer " + json.dumps({
        "prompt_tokens": num_prompt,
        "text": processor.tokenizer.decode(ids, skip_special_tokens=True),
        "tokens": [processor.tokenizer.decode([token]) for token in ids.tolist()],
        "logprobs": logprobs.gather(1, ids[:, None])[:, 0].tolist(),
        "closest": (best[:, 0] - best[:, 1]).min().item(),
    }))
"""


@pytest.fixture(scope="module")
def sglang() -> SglangInstallation:
    try:
        return SglangInstallation.from_environment(os.environ, Path())
    except EngineError as error:
        pytest.skip(str(error))


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """A board of three buttons; the red one is elsewhere in each."""
    paths = []
    for number, place in enumerate(PLACES):
        image = Image.new("RGB", (512, 384), "#2e4a62")
        draw = ImageDraw.Draw(image)
        draw.rectangle([16, 40, 496, 370], fill="#ececee")
        for (x, y), colour in {place: "red", (80, 300): "blue", (380, 80): "green"}.items():
            draw.rectangle([x, y, x + 90, y + 50], fill=colour)
            draw.text((x + 10, y + 18), colour.title(), fill="white")
        paths.append(tmp_path / f"{number}.png")
        image.save(paths[-1])
    return paths


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        # A logit near 16 is a multiple of 1/16 in bfloat16 and of 1/128 in float16. On a CPU the model is
        # 0.006 nats from itself in float32, and resizing pictures another way moves it by 0.003.
        ("bfloat16", 0.1),
        ("float16", 0.02),
    ],
)
def test_sglang_answers_as_transformers_does(
    dtype: Dtype, tolerance: float, sglang: SglangInstallation, pictures: list[Path], tmp_path: Path
) -> None:
    checkpoint = tmp_path / "00001-grpo-000001"
    shutil.copytree(FIRST_DESK, checkpoint / "model")
    (checkpoint / "COMPLETE").write_text("")
    folder = export_checkpoint(checkpoint, tmp_path / dtype, dtype=dtype)
    expected = transformers_answers(sglang, folder, pictures)
    with served(sglang, folder, tmp_path / "log", "--mem-fraction-static", "0.1", dtype=dtype) as url:
        answers = [chat(url, picture, max_tokens=MAX_TOKENS) for picture in pictures]
    assert len({one["text"] for one in expected}) == len(pictures), "the answer depends on the picture"
    for answer, wanted in zip(answers, expected, strict=True):
        assert wanted["closest"] > CLEAR
        choice = answer["choices"][0]
        assert choice["message"]["content"] == wanted["text"]
        assert choice["finish_reason"] == "stop"
        assert answer["usage"]["prompt_tokens"] == wanted["prompt_tokens"], "text and image tokens"
        said = choice["logprobs"]["content"]
        assert [one["token"] for one in said] == wanted["tokens"]
        assert [one["logprob"] for one in said] == pytest.approx(wanted["logprobs"], rel=0, abs=tolerance)


@pytest.mark.parametrize("model_type", SERVED)
def test_sglang_computes_what_transformers_does(
    model_type: str, sglang: SglangInstallation, tmp_path: Path
) -> None:
    # In float16 rounding moves random models by 0.0015 nats; in bfloat16 by as much as positions of pictures.
    export = make_export(tmp_path, model_type, "float16")
    assert faults(measured(sglang, export, model_type, "float16")) == []


def transformers_answers(
    sglang: SglangInstallation, folder: Path, pictures: list[Path]
) -> list[dict[str, Any]]:
    """Greedy, in float32 on the CPU, by the transformers that SGLang's interpreter has."""
    return run_reference(
        sglang, folder, "-c", REFERENCE, str(folder), ASKED, str(MAX_TOKENS), *map(str, pictures)
    )
