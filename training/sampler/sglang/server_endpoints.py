"""The calls of SGLang 0.5.16's HTTP server that Deskhand makes, as values.

Names and fields are those of `sglang.srt.managers.io_struct`; `training.sampler.sglang.http_client` sends
them.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from training.sampler.engine import TopTokens

T = TypeVar("T")
Body = dict[str, Any]
GENERATE_S = 600.0
SYNC_S = 300.0
"""Limit of a call that moves weights."""


class SglangError(Exception):
    """Raised when a call to an SGLang server has no good answer; root of this package's call errors."""


class SglangUnreachable(SglangError):
    """Raised when the server cannot be reached, or goes away before it answers."""

    def __init__(self, url: str, path: str, cause: Exception) -> None:
        super().__init__(f"{url}{path}: {type(cause).__name__} {cause}".rstrip())


class SglangRefused(SglangError):
    """Raised when the server answers with an error."""

    def __init__(self, status: int, path: str, message: str) -> None:
        super().__init__(f"{path}: status {status}: {message}")
        self.status, self.message = status, message


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One HTTP call and how to read its answer."""

    method: str
    path: str
    read: Callable[[bytes], T]
    body: Body | None = None
    timeout_s: float = 60.0

    def answer(self, status: int, content: bytes) -> T:
        """What the server said. Raises SglangRefused for an error answer or `success: false`."""
        if status >= 400:
            raise SglangRefused(status, self.path, _message(content))
        return self.read(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Answer of `generate`."""

    token_ids: list[int]
    """Generated tokens, the stop token included. [num_tokens]"""
    logprobs: list[float]
    """Of each generated token, nats: after temperature and logit bias, before top-k. [num_tokens]"""
    finish: Literal["stop", "length", "abort"]
    weight_version: str
    prompt_tokens: int
    cached_tokens: int
    """Prompt tokens whose keys and values were there already."""
    top: list[TopTokens]
    """At each generated token the likeliest ones, as `logprobs`; empty without `num_top`. [num_tokens]"""
    input_logprobs: list[float | None]
    """Of the prompt tokens from `logprob_start` on, at temperature 1; the first may be None."""
    input_chosen: list[dict[int, float]]
    """Per prompt token from `logprob_start` on: logprobs of the asked-for ids; empty where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What a server says of itself; the whole answer is in `raw`."""

    model_path: str
    weight_version: str
    raw: Body = field(repr=False)


def health(timeout_s: float = 10.0) -> Call[None]:
    """Answers when the server runs (it does not ask the scheduler unless it has to generate)."""
    return Call("GET", "/health", _nothing, timeout_s=timeout_s)


def generate(
    token_ids: Sequence[int],
    sampling: Body,
    *,
    images: Sequence[Body] = (),
    logprob_start: int = -1,
    chosen_ids: Sequence[int] = (),
    adapter: str = "",
    num_top: int = 0,
) -> Call[Generated]:
    """Continue `token_ids` (image pads expanded). `sampling` is SGLang's sampling_params.

    `images`: one entry per image, as `training.sampler.sglang.processors` reads them. `logprob_start`: also
    the logprobs of the prompt from this position on; `chosen_ids`: and of these ids at each position.
    `adapter`: name of a loaded one. `num_top`: number of likeliest tokens to report at each generated one.
    """
    body: Body = {
        "input_ids": list(token_ids),
        "sampling_params": sampling,
        "return_logprob": True,
        "logprob_start_len": logprob_start,
    }
    if images:
        body["image_data"] = list(images)
    if chosen_ids:
        body["token_ids_logprob"] = list(chosen_ids)
    if adapter:
        body["lora_path"] = adapter
    if num_top:
        body["top_logprobs_num"] = num_top
    return Call("POST", "/generate", _generated, body, GENERATE_S)


def abort() -> Call[None]:
    """End all requests; each is answered with what it has (finish: abort)."""
    return Call("POST", "/abort_request", _nothing, {"rid": "", "abort_all": True})


def pause() -> Call[None]:
    """Take no new requests and answer the running ones with what they have; returns when none runs."""
    return Call("POST", "/pause_generation", _nothing, {"mode": "abort"}, 120.0)


def resume() -> Call[None]:
    """Undo `pause`."""
    return Call("POST", "/continue_generation", _nothing, {})


def flush_cache(wait_s: float = 30.0) -> Call[None]:
    """Forget all keys and values; waits up to `wait_s` for running requests. Refused (400) while some run."""
    return Call("POST", f"/flush_cache?timeout={wait_s:g}", _nothing, None, wait_s + 30.0)


def load_from_disk(folder: str, weight_version: int | str) -> Call[None]:
    """Weights of a transformers folder; the cache is flushed."""
    body = {"model_path": folder, "weight_version": str(weight_version), "flush_cache": True}
    return Call("POST", "/update_weights_from_disk", _success, body, SYNC_S)


def load_adapter(name: str, folder: str) -> Call[None]:
    """A LoRA adapter in peft's format, beside the weights (a server started with --enable-lora)."""
    return Call("POST", "/load_lora_adapter", _success, {"lora_name": name, "lora_path": folder}, SYNC_S)


def unload_adapter(name: str) -> Call[None]:
    """Forget it; waits for the requests that use it."""
    return Call("POST", "/unload_lora_adapter", _success, {"lora_name": name}, SYNC_S)


def join_group(
    *, address: str, port: int, rank_offset: int, world_size: int, group: str, backend: str = "nccl"
) -> Call[None]:
    """Join a group of trainer and servers; it blocks until all joined: send it before the trainer joins."""
    body = {
        "master_address": address,
        "master_port": port,
        "rank_offset": rank_offset,
        "world_size": world_size,
        "group_name": group,
        "backend": backend,
    }
    return Call("POST", "/init_weights_update_group", _success, body, SYNC_S)


def leave_group(group: str) -> Call[None]:
    """Undo `join_group`."""
    return Call("POST", "/destroy_weights_update_group", _success, {"group_name": group})


def load_broadcast(
    names: Sequence[str],
    dtypes: Sequence[str],
    shapes: Sequence[Sequence[int]],
    *,
    group: str,
) -> Call[None]:
    """Receive tensors from rank 0 of `group`, in this order; send it before broadcasting.

    `dtypes`: e.g. "bfloat16". The cache is flushed and the version named after the last bucket.
    """
    body = {
        "names": list(names),
        "dtypes": list(dtypes),
        "shapes": [list(shape) for shape in shapes],
        "group_name": group,
        "flush_cache": False,
    }
    return Call("POST", "/update_weights_from_distributed", _success, body, SYNC_S)


def load_tensors(serialized: Sequence[str]) -> Call[None]:
    """Take tensors by their handles (same GPU): one base64 text per tensor-parallel rank."""
    body = {
        "serialized_named_tensors": list(serialized),
        "flush_cache": False,
        "load_format": "flattened_bucket",
    }
    return Call("POST", "/update_weights_from_tensor", _success, body, SYNC_S)


def name_version(weight_version: int | str) -> Call[None]:
    """Say which weights these are, without touching them or the running requests."""
    body = {"new_version": str(weight_version), "abort_all_requests": False}
    return Call("POST", "/update_weight_version", _success, body)


def release_memory() -> Call[None]:
    """Give GPU memory back (a server started with the memory saver; no request may run)."""
    return Call("POST", "/release_memory_occupation", _nothing, {}, SYNC_S)


def resume_memory() -> Call[None]:
    """Take the memory again. Keys and values are gone; weights come back from the server's host copy."""
    return Call("POST", "/resume_memory_occupation", _nothing, {}, SYNC_S)


def model_info() -> Call[ServerState]:
    return Call("GET", "/model_info", _state)


def server_info() -> Call[Body]:
    """All settings and the scheduler's figures."""
    return Call("GET", "/server_info", lambda content: json.loads(content))


def _nothing(_: bytes) -> None:
    return None


def _success(content: bytes) -> None:
    answer = json.loads(content)
    if not answer.get("success", True):
        raise SglangRefused(200, "answer", str(answer.get("message", answer)))


def _state(content: bytes) -> ServerState:
    answer = json.loads(content)
    return ServerState(
        model_path=str(answer["model_path"]), weight_version=str(answer["weight_version"]), raw=answer
    )


def _generated(content: bytes) -> Generated:
    answer = json.loads(content)
    meta = answer["meta_info"]
    generated = meta.get("output_token_logprobs") or []
    chosen = meta.get("input_token_ids_logprobs") or []
    return Generated(
        token_ids=[int(entry[1]) for entry in generated],
        logprobs=[float(entry[0]) for entry in generated],
        finish=meta["finish_reason"]["type"],
        weight_version=str(meta["weight_version"]),
        # A request that is aborted in SGLang's queue is answered without its counts.
        prompt_tokens=int(meta.get("prompt_tokens", 0)),
        cached_tokens=int(meta.get("cached_tokens", 0)),
        top=[
            [(int(item[1]), float(item[0])) for item in entry or ()]
            for entry in meta.get("output_top_logprobs") or []
        ],
        input_logprobs=[entry[0] for entry in meta.get("input_token_logprobs") or []],
        input_chosen=[{int(item[1]): float(item[0]) for item in entry or []} for entry in chosen],
    )


def _message(content: bytes) -> str:
    """The server's own words, whichever of its error forms it used."""
    try:
        answer = json.loads(content)
    except ValueError:
        return content.decode(errors="replace")[:500]
    if not isinstance(answer, dict):
        return str(answer)[:500]
    error = answer.get("error")
    if isinstance(error, dict):
        return str(error.get("message", error))[:500]
    return str(answer.get("message") or answer.get("detail") or answer)[:500]
