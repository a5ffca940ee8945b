"""Exports of random models of every family, served by stock SGLang and compared with transformers.

The server gets the folder and flags of its own documentation; none of our classes, processors or endpoints.
Texts of random models differ where two tokens are nearly alike, so logprobs of the same tokens are compared.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
from PIL import Image, ImageDraw

from testing.training.tiny_families import QWEN3_5, TEXT, make_family
from training.checkpoints.export import Dtype, export_checkpoint
from training.contracts.trainer_state import COMPLETE
from training.sampler.sglang.server_arguments import SglangInstallation
from training.sampler.sglang.server_process import free_port

REFERENCE = Path(__file__).with_name("transformers_logprobs.py")
SEEING = ("qwen2_5_vl", "qwen3_5", "qwen3_5_moe")
SERVED = (*TEXT, *SEEING)
"""SGLang 0.5.16 has no class for `qwen3_5_text`, whose tower was taken off."""
FLAGS = (
    # Triton compiles for heads of any width; First desk has some of 16.
    *("--attention-backend", "triton", "--mm-attention-backend", "triton_attn"),
    *("--sampling-backend", "pytorch", "--grammar-backend", "none", "--disable-cuda-graph"),
)
BESIDE_OTHERS = (
    # The share is of what was free at the start, and others take memory meanwhile; the pools are small.
    *("--mem-fraction-static", "0.5", "--max-total-tokens", "4096", "--max-running-requests", "4"),
    *("--context-length", "2048"),
)
START_S = 420.0
"""The first start on a machine compiles kernels."""
ASKED = "Click the red button."
PROMPT = "Open the settings, turn the sound off, and press the red button beside the list of files."
NUM_TOP = 20
LEAST_TOP = 5
"""Many a token is a part of a letter, and all of those have one text."""
BOARD = (224, 224)
"""Both families' patches fill it, within the limits of pixels: nothing is resized."""
ROUNDINGS = 2.0
"""Times that SGLang may be as far from fp32 as transformers in its precision is: it rounds elsewhere."""
CLEARLY = 3.0
"""Bars by which another prompt or picture must move the logprobs, else agreement would prove nothing."""
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
WIDTHS: dict[str, Any] = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 64,
}  # fmt: skip
"""Of a small model whose heads are those of published ones, which is what kernels depend on."""
TOWER = {"hidden_size": 128, "intermediate_size": 256, "num_heads": 2, "out_hidden_size": 256}
HYBRID: dict[str, Any] = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
    "rope_parameters": ROPE
    | {"partial_rotary_factor": 0.25, "mrope_interleaved": True, "mrope_section": [3, 3, 2]},
}  # fmt: skip


class NotServedError(RuntimeError):
    """SGLang ended, was slow or refused a request, or the reference failed; ends with the log's end."""


def make_export(folder: Path, model_type: str, dtype: Dtype) -> Path:
    """A random model of small but ordinary widths, as a checkpoint of ours; returns its export."""
    text = dict(WIDTHS)
    if model_type in QWEN3_5:
        text |= HYBRID
    elif model_type == "qwen2_5_vl":
        text["rope_parameters"] = ROPE | {"mrope_section": [8, 12, 12]}
    make_family(folder / "checkpoint" / "model", model_type, text=text, tower=TOWER)
    (folder / "checkpoint" / COMPLETE).write_text("")
    return export_checkpoint(folder / "checkpoint", folder / "export", dtype=dtype)


def measured(
    sglang: SglangInstallation, export: Path, model_type: str, dtype: Dtype, start_s: float = START_S
) -> dict[str, Any]:
    """How far SGLang is from transformers. Raises NotServedError."""
    boards = (("#2e4a62", (20, 30)), ("#e8d9a0", (130, 150))) if model_type in SEEING else ()
    pictures = [
        draw_board(export.with_name(f"{number}.png"), place, size=BOARD, desk=desk)
        for number, (desk, place) in enumerate(boards)
    ]
    expected = reference(sglang, export, dtype, pictures)
    started = time.monotonic()
    flags = [*BESIDE_OTHERS, *(("--max-mamba-cache-size", "16") if model_type in QWEN3_5 else ())]
    with served(sglang, export, export.with_name("log"), *flags, dtype=dtype, start_s=start_s) as url:
        ready_s = time.monotonic() - started
        logprobs = of_prompt(url, expected["ids"])
        answers = [chat(url, picture, max_tokens=1, top_logprobs=NUM_TOP) for picture in pictures]
    pairs = zip(answers, expected.get("pictures", ()), strict=True)
    seen = [_picture(*pair, expected["vocabulary"]) for pair in pairs]
    return {
        "ready_s": round(ready_s, 1),
        "dtype": dtype,
        "text": _text(logprobs, expected),
        "pictures": seen,
        "pictures_apart": apart(*(one["exact"] for one in expected["pictures"]))["mean"] if seen else None,
    }


def faults(row: dict[str, Any]) -> list[str]:
    """Why a row proves no agreement; empty when it does."""
    found = []
    parts = {"text": row["text"]} | {f"picture {n}": one for n, one in enumerate(row["pictures"], 1)}
    for name, part in parts.items():
        bar = ROUNDINGS * part["rounding"]
        if not part["mean"] <= bar:
            nearer = " (positions of one row fit)" if part.get("one_row", bar) < bar else ""
            found.append(f"{name}: mean {part['mean']:.4f} nats, the bar is {bar:.4f}{nearer}")
        control = part.get("other_start", row["pictures_apart"])
        if not control >= CLEARLY * bar:
            found.append(f"{name}: another one moves it by {control:.4f} nats only")
        if part.get("prompt_tokens", 0) != part.get("prompt_tokens_expected", 0):
            found.append(f"{name}: {part['prompt_tokens']} tokens, not {part['prompt_tokens_expected']}")
    return found


def apart(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Mean and largest |difference|, in nats."""
    gaps = [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    return {"mean": fmean(gaps), "largest": max(gaps), "tokens": len(gaps)}


def _text(logprobs: list[float], expected: dict[str, Any]) -> dict[str, Any]:
    return apart(logprobs, expected["exact"]) | {
        "rounding": apart(expected["rounded"], expected["exact"])["mean"],
        "other_start": apart(expected["other_start"], expected["exact"])["mean"],
    }


def _picture(answer: dict[str, Any], expected: dict[str, Any], vocabulary: list[str]) -> dict[str, Any]:
    """Of the sampled token and the likeliest others; what is not the text of one token alone is left out."""
    (first,) = answer["choices"][0]["logprobs"]["content"]
    said = {one["token"]: one["logprob"] for one in [*first["top_logprobs"], first]}
    ids = {word: vocabulary.index(word) for word in said if vocabulary.count(word) == 1}
    if len(ids) < LEAST_TOP:
        raise NotServedError(f"of {len(said)} answered tokens {len(ids)} are in the vocabulary once")
    ours = [said[word] for word in ids]
    theirs = {name: [expected[name][one] for one in ids.values()] for name in ("exact", "rounded", "one_row")}
    return apart(ours, theirs["exact"]) | {
        # Of all tokens: 20 of them are a small sample of what rounding does.
        "rounding": apart(expected["rounded"], expected["exact"])["mean"],
        "one_row": apart(ours, theirs["one_row"])["mean"],
        "best": first["logprob"] - max(expected["exact"]),
        "prompt_tokens": answer["usage"]["prompt_tokens"],
        "prompt_tokens_expected": expected["prompt_tokens"],
    }


def reference(sglang: SglangInstallation, folder: Path, dtype: Dtype, pictures: list[Path]) -> dict[str, Any]:
    """What `transformers_logprobs` says, by SGLang's interpreter and without a GPU."""
    arguments = [str(folder), dtype, PROMPT, ASKED, *map(str, pictures)]
    return run_reference(sglang, folder, "-P", str(REFERENCE), *arguments)[0]


def run_reference(sglang: SglangInstallation, folder: Path, *arguments: str) -> list[Any]:
    """The answers that a program prints. Raises NotServedError."""
    own = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sglang.python, *arguments], cwd=folder, env=surroundings(sglang) | own,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotServedError(f"transformers failed\n{done.stderr[-3000:]}")
    lines = done.stdout.splitlines()
    return [json.loads(line.removeprefix("answer ")) for line in lines if line.startswith("answer ")]


@contextmanager
def served(
    sglang: SglangInstallation,
    folder: Path,
    log: Path,
    *flags: str,
    dtype: Dtype = "bfloat16",
    start_s: float = START_S,
) -> Iterator[str]:
    """The server's address, while it runs. Raises NotServedError."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # SGLang keeps the last inputs of a convolution in bfloat16 whatever the model is in.
    own = {"SGLANG_MAMBA_CONV_DTYPE": dtype}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sglang.python, "-m", "sglang.launch_server", "--model-path", str(folder),
             "--host", "127.0.0.1", "--port", str(port), *FLAGS, *flags],
            cwd=folder, env=surroundings(sglang) | own, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + start_s
        while not answers_health(url):
            ended = process.poll() is not None
            if ended or time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-6000:]
                raise NotServedError(f"SGLang {'ended' if ended else 'is slow'}\n{said}")
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


def of_prompt(url: str, ids: list[int]) -> list[float]:
    """Logprobs of all tokens of a prompt but the first."""
    asked = {
        "input_ids": ids,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": 0,
    }
    found = _post(f"{url}/generate", asked)["meta_info"]["input_token_logprobs"]
    if [one[1] for one in found] != ids:
        raise NotServedError(f"logprobs of other tokens: {found}"[:2000])
    return [one[0] for one in found[1:]]


def chat(url: str, picture: Path, **wanted: Any) -> dict[str, Any]:
    """One chat request, greedy, with logprobs."""
    data = f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": data}}, {"type": "text", "text": ASKED}]
    messages = [{"role": "user", "content": parts}]
    asked = {"model": "default", "messages": messages, "temperature": 0, "logprobs": True, **wanted}
    return _post(f"{url}/v1/chat/completions", asked)


def _post(url: str, asked: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(url, json=asked, timeout=180, trust_env=False)
    if answer.status_code != httpx.codes.OK:
        raise NotServedError(f"{url}: {answer.status_code} {answer.text[:2000]}")
    return answer.json()


def surroundings(sglang: SglangInstallation) -> dict[str, str]:
    """Without this checkout on the path, and without what our launcher sets."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SGLANG_")}
    return ours | {"PYTHONPATH": sglang.python_path, "HF_HUB_OFFLINE": "1", "NO_PROXY": "127.0.0.1,localhost"}


def draw_board(path: Path, place: tuple[int, int], *, size: tuple[int, int], desk: str = "#2e4a62") -> Path:
    """A white window on a desk, a red button in it at `place`."""
    image = Image.new("RGB", size, desk)
    draw = ImageDraw.Draw(image)
    draw.rectangle([16, 16, size[0] - 16, size[1] - 16], fill="#ececee")
    x, y = place
    draw.rectangle([x, y, x + 60, y + 40], fill="red")
    draw.text((x + 10, y + 14), "Red", fill="white")
    image.save(path)
    return path
