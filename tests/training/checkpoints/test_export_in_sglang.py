"""Stock SGLang serves an export as it is: a chat with a PNG is answered as transformers answers it.

    python -m pytest -m gpu tests/training/checkpoints/test_export_in_sglang.py

The server gets the folder and flags of its own documentation; none of our classes, processors or endpoints.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from PIL import Image, ImageDraw

from testing.paths import REPOSITORY
from training.checkpoints.export import Dtype, export_checkpoint
from training.sampler.engine import EngineError
from training.sampler.sglang.server_arguments import SglangInstallation
from training.sampler.sglang.server_process import free_port

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
FIRST_DESK = REPOSITORY / "training" / "checkpoints_shipped" / "first-desk"
FLAGS = (
    # Triton compiles for heads of any width; First desk has some of 16.
    *("--attention-backend", "triton", "--mm-attention-backend", "triton_attn"),
    *("--sampling-backend", "pytorch", "--grammar-backend", "none"),
    *("--disable-cuda-graph", "--mem-fraction-static", "0.1"),
)
START_S = 420.0
"""The first start on a machine compiles kernels."""
ASKED = "Click the red button."
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
    with served(sglang, folder, tmp_path / "log") as url:
        answers = [ask(url, picture) for picture in pictures]
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


def transformers_answers(
    sglang: SglangInstallation, folder: Path, pictures: list[Path]
) -> list[dict[str, Any]]:
    """Greedy, in float32 on the CPU, by the transformers that SGLang's interpreter has."""
    done = subprocess.run(
        [sglang.python, "-c", REFERENCE, str(folder), ASKED, str(MAX_TOKENS), *map(str, pictures)],
        cwd=folder, env=surroundings(sglang) | {"CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.removeprefix("answer ") for line in done.stdout.splitlines() if line.startswith("answer ")]
    return [json.loads(line) for line in lines]


@contextmanager
def served(sglang: SglangInstallation, folder: Path, log: Path) -> Iterator[str]:
    """The server's address, while it runs."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sglang.python, "-m", "sglang.launch_server", "--model-path", str(folder),
             "--host", "127.0.0.1", "--port", str(port), *FLAGS],
            cwd=folder, env=surroundings(sglang), stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START_S
        while not answers_health(url):
            assert process.poll() is None, f"SGLang ended\n{log.read_text(errors='replace')[-6000:]}"
            assert time.monotonic() < deadline, f"SGLang is slow\n{log.read_text(errors='replace')[-6000:]}"
            time.sleep(0.5)
        yield url
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers_health(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=10, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def ask(url: str, picture: Path) -> dict[str, Any]:
    """One chat request, greedy."""
    data = f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": data}}, {"type": "text", "text": ASKED}]
    asked = {
        "model": "default",
        "messages": [{"role": "user", "content": parts}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "logprobs": True,
    }
    answer = httpx.post(f"{url}/v1/chat/completions", json=asked, timeout=120, trust_env=False)
    assert answer.status_code == httpx.codes.OK, answer.text[:2000]
    return answer.json()


def surroundings(sglang: SglangInstallation) -> dict[str, str]:
    """Without this checkout on the path, and without what our launcher sets."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SGLANG_")}
    return ours | {"PYTHONPATH": sglang.python_path, "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1,localhost"}
