"""`python -m sglang.launch_server` of the stand-in.

It proves our client's side only (requests, retries, syncs, supervision); that SGLang itself does what this
does is proven on a GPU by benchmarks/gpu/engine_smoke.py. A completion is generated token by token, so that
it can be aborted in the middle; STAND_IN_TOKEN_S makes tokens slow.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from testing.training.teacher_forcing import model_inputs
from training.contracts.config import ModelConfig, PromptConfig
from training.render.rendered_sequence import RenderedSequence
from training.render.renderer import Renderer
from training.sampler.engine import EngineSequence, SampledCompletion, SamplingSettings
from training.sampler.engines.transformers_engine import TransformersEngine
from training.sampler.sglang.parameter_names_file import write_names
from training.sampler.sglang.patchify import patchify
from training.sampler.weights.engine_tensor_names import sglang_name
from training.weights import sync_process_group
from training.weights.ipc_channel import open_handle


class State:
    """The one model of this server."""

    def __init__(self, folder: str, version: str) -> None:
        self.reader = Renderer.from_folder(folder, ModelConfig(), PromptConfig())
        self.engine = TransformersEngine(folder, self.reader, seed=os.getpid())
        self.folder, self.version = folder, version
        self.adapter = ""
        self.lock = threading.Lock()
        self.running = asyncio.Event()
        self.running.set()
        self.num_running, self.abort_number = 0, 0
        self.is_asleep = False
        self.seen_prefixes: list[list[int]] = []
        self.groups: dict[str, Any] = {}
        self.store: Any = None
        known = [sglang_name(name) for name, _ in self.engine.model.named_parameters()]
        computed = ["lm_head.weight", "model.layers.0.self_attn.rotary_emb.cos_sin_cache"]
        write_names(Path(os.environ["DESKHAND_IMAGE_FOLDER"]), [*known, *computed])

    @torch.no_grad()
    def put(self, tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        """New values of some weights; names that are not known are skipped, as SGLang does."""
        parameters = dict(self.engine.model.named_parameters())
        for name, tensor in tensors:
            if name in parameters:
                parameters[name].copy_(tensor)

    def sequence(self, body: dict[str, Any]) -> EngineSequence:
        """As `training.sampler.sglang.processors` reads the request; pixels as on the GPU."""
        images = body.get("image_data", [])
        if images and isinstance(images[0], str):
            return self.foreign_sequence(body["input_ids"], images)
        spool = Path(os.environ["DESKHAND_IMAGE_FOLDER"])
        levels = torch.from_numpy(np.load(spool / "levels.npy"))
        processor = self.reader.image_processor
        pixels = [
            patchify(
                torch.from_numpy(np.load(spool / image["file"])),
                levels,
                patch=processor.patch_size,
                merge=self.reader.merge,
                temporal=processor.temporal_patch_size,
            ).numpy()
            for image in images
        ]
        return EngineSequence(
            sequence_id="", token_ids=list(body["input_ids"]), pixels=pixels,
            grids=[tuple(image["grid"]) for image in images],
        )  # fmt: skip

    def foreign_sequence(self, token_ids: list[int], urls: list[str]) -> EngineSequence:
        """SGLang's own form: paths of PNGs, one pad each."""
        pngs = [Path(url.removeprefix("file://")).read_bytes() for url in urls]
        sizes = [Image.open(io.BytesIO(png)).size for png in pngs]
        counts = iter(self.reader.image_tokens(size).count(self.reader.image_pad_id) for size in sizes)
        pad = self.reader.image_pad_id
        expanded = [[pad] * next(counts) if token == pad else [token] for token in token_ids]
        return EngineSequence(
            sequence_id="", token_ids=[token for part in expanded for token in part],
            pixels=[self.reader.pixels(png) for png in pngs],
            grids=[self.reader.image_grid(size) for size in sizes],
        )  # fmt: skip

    def one_token(
        self, sequence: EngineSequence, parameters: dict[str, Any], num_top: int
    ) -> SampledCompletion:
        """Draw it with the request's bias as the ban."""
        with self.lock:
            self.reader.banned_ids = [int(token) for token in parameters.get("logit_bias", {})]
            sampling = SamplingSettings(
                temperature=parameters["temperature"], max_tokens=1, top_logprobs=num_top
            )
            (sampled,) = self.engine.generate([sequence], [sampling])
        return sampled

    def score(self, sequence: EngineSequence, start: int, chosen: list[int]) -> tuple[list, list]:
        """Prompt logprobs from `start` on without any ban; the first entry is empty, as SGLang's is."""
        reader, ids = self.reader, sequence.token_ids
        rendered = RenderedSequence(
            token_ids=ids, grids=sequence.grids, images=[str(n) for n in range(len(sequence.grids))]
        )
        inputs = model_inputs(
            [rendered], lambda name: sequence.pixels[int(name)], image_pad_id=reader.image_pad_id,
            pad_id=reader.pad_id, merge=reader.merge,
        )  # fmt: skip
        keep = torch.arange(start, len(ids) - 1)
        with self.lock, torch.no_grad():
            logits = self.engine.model(**inputs, use_cache=False, logits_to_keep=keep).logits[0]
        logprobs = logits.float().log_softmax(-1)
        given: list = [[None, ids[start], None]]
        others: list = [None]
        for row, token in zip(logprobs, ids[start + 1 :], strict=True):
            given.append([float(row[token]), token, None])
            others.append([[float(row[other]), other, None] for other in chosen])
        return given, others

    def cached_tokens(self, token_ids: list[int]) -> int:
        """The longest known prefix."""
        best = 0
        for known in self.seen_prefixes:
            count = next(
                (
                    place
                    for place, pair in enumerate(zip(known, token_ids, strict=False))
                    if pair[0] != pair[1]
                ),
                min(len(known), len(token_ids)),
            )
            best = max(best, count)
        return best


async def generate(request: Request) -> Response:
    state: State = request.app.state.state
    body = await request.json()
    await state.running.wait()
    if state.is_asleep:
        return JSONResponse({"error": {"message": "the memory is released"}}, 500)
    if body.get("lora_path", "") != state.adapter:
        return JSONResponse({"error": {"message": f"the adapter is {state.adapter!r}"}}, 400)
    sequence, parameters = state.sequence(body), body["sampling_params"]
    meta: dict[str, Any] = {
        "prompt_tokens": len(sequence.token_ids),
        "cached_tokens": state.cached_tokens(sequence.token_ids),
    }
    if body["logprob_start_len"] >= 0:
        given, others = await asyncio.to_thread(
            state.score, sequence, body["logprob_start_len"], body.get("token_ids_logprob", [])
        )
        meta |= {"input_token_logprobs": given, "input_token_ids_logprobs": others}
    state.num_running += 1
    try:
        meta |= await generate_tokens(state, sequence, parameters, body.get("top_logprobs_num", 0))
    finally:
        state.num_running -= 1
    if meta["finish_reason"]["type"] == "abort" and not meta["output_token_logprobs"]:
        del meta["prompt_tokens"], meta["cached_tokens"]  # as SGLang answers what it drops from its queue
    state.seen_prefixes = [*state.seen_prefixes[-200:], sequence.token_ids]
    return JSONResponse({"text": "", "meta_info": meta | {"weight_version": state.version}})


async def generate_tokens(
    state: State, sequence: EngineSequence, parameters: dict[str, Any], num_top: int
) -> dict[str, Any]:
    """Until a stop token, the length, or an abort."""
    entries: list[list[Any]] = []
    tops: list[list[list[Any]]] = []
    abort_number = state.abort_number
    finish = "length"
    while len(entries) < parameters["max_new_tokens"]:
        if state.abort_number != abort_number:
            finish = "abort"
            break
        sampled = await asyncio.to_thread(state.one_token, sequence, parameters, num_top)
        (token,), (logprob,) = sampled.token_ids, sampled.logprobs
        entries.append([logprob, token, None])
        tops += [[[value, other, None] for other, value in place] for place in sampled.top]
        if token in parameters.get("stop_token_ids", []):
            finish = "stop"
            break
        await asyncio.sleep(float(os.environ.get("STAND_IN_TOKEN_S", "0")))
    meta: dict[str, Any] = {"output_token_logprobs": entries, "finish_reason": {"type": finish}}
    return meta | {"output_top_logprobs": tops} if num_top else meta


async def pause(request: Request) -> Response:
    state: State = request.app.state.state
    state.running.clear()
    state.abort_number += 1
    while state.num_running:
        await asyncio.sleep(0.01)
    return JSONResponse({"status": "ok"})


async def abort(request: Request) -> Response:
    request.app.state.state.abort_number += 1
    return Response()


async def resume(request: Request) -> Response:
    request.app.state.state.running.set()
    return JSONResponse({"status": "ok"})


async def flush(request: Request) -> Response:
    request.app.state.state.seen_prefixes.clear()
    return Response("flushed")


async def load(request: Request) -> Response:
    state: State = request.app.state.state
    body = await request.json()
    try:
        await asyncio.to_thread(
            state.engine.load_weights, Path(body["model_path"]), int(body["weight_version"])
        )
    except (OSError, ValueError) as error:
        return JSONResponse({"success": False, "message": str(error)}, 400)
    state.version, state.folder = body["weight_version"], body["model_path"]
    return JSONResponse({"success": True, "message": ""})


async def load_adapter(request: Request) -> Response:
    state: State = request.app.state.state
    body = await request.json()
    if body["lora_name"] == state.adapter:
        return JSONResponse({"success": False, "error_message": "this name is taken"}, 400)
    await asyncio.to_thread(
        state.engine.load_weights, Path(body["lora_path"]), state.engine.policy_version + 1
    )
    state.adapter = body["lora_name"]
    return JSONResponse({"success": True})


async def unload_adapter(request: Request) -> Response:
    """The one before, when another has been loaded meanwhile."""
    state: State = request.app.state.state
    if (await request.json())["lora_name"] == state.adapter:
        state.adapter = ""
    return JSONResponse({"success": True})


async def join(request: Request) -> Response:
    """A process group beside none of our own; gloo, as there is no GPU."""
    state: State = request.app.state.state
    body = await request.json()

    def work() -> None:
        state.store = sync_process_group.find_store(
            body["master_address"], body["master_port"], body["world_size"]
        )
        state.groups[body["group_name"]] = sync_process_group.join(
            state.store,
            rank=body["rank_offset"],
            world_size=body["world_size"],
            name=body["group_name"],
            backend=body["backend"],
        )

    await asyncio.to_thread(work)
    return JSONResponse({"success": True, "message": ""})


async def leave(request: Request) -> Response:
    state: State = request.app.state.state
    group = state.groups.pop((await request.json())["group_name"], None)
    if group is None:
        return JSONResponse({"success": False, "message": "The group to be destroyed does not exist."}, 400)
    sync_process_group.abort(group)
    return JSONResponse({"success": True, "message": ""})


async def receive(request: Request) -> Response:
    """Tensors by broadcast. As in SGLang a group that nobody joined ends the server."""
    state: State = request.app.state.state
    body = await request.json()
    if body["group_name"] not in state.groups:
        os._exit(1)

    def work() -> None:
        dtypes = [getattr(torch, name) for name in body["dtypes"]]
        tensors = [
            torch.empty(shape, dtype=dtype) for shape, dtype in zip(body["shapes"], dtypes, strict=True)
        ]
        for waiting in sync_process_group.broadcast(tensors, state.groups[body["group_name"]]):
            waiting.wait()
        state.put(zip(body["names"], tensors, strict=True))

    await asyncio.to_thread(work)
    return JSONResponse({"success": True, "message": ""})


async def take(request: Request) -> Response:
    """Tensors by the handle of shared memory."""
    state: State = request.app.state.state
    (handle,) = (await request.json())["serialized_named_tensors"]
    await asyncio.to_thread(lambda: state.put(open_handle(base64.b64decode(handle))))
    return JSONResponse({"success": True, "message": ""})


async def name_version(request: Request) -> Response:
    request.app.state.state.version = (await request.json())["new_version"]
    return JSONResponse({"success": True, "message": ""})


async def info(request: Request) -> Response:
    state: State = request.app.state.state
    return JSONResponse({"model_path": state.folder, "weight_version": state.version})


async def settings(_: Request) -> Response:
    return JSONResponse({"version": "stand-in", "attention_backend": "eager", "dtype": "float32"})


async def release(request: Request) -> Response:
    request.app.state.state.is_asleep = True
    return Response()


async def retake(request: Request) -> Response:
    request.app.state.state.is_asleep = False
    return Response()


async def health(_: Request) -> Response:
    return Response()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser()
    for name in ("--model-path", "--weight-version", "--host", "--port"):
        parser.add_argument(name)
    options, _ = parser.parse_known_args()
    logging.info("server_args=ServerArgs(...)")
    logging.info("Load weight begin. avail mem=1.00 GB")
    routes = [
        Route("/generate", generate, methods=["POST"]),
        Route("/pause_generation", pause, methods=["POST"]),
        Route("/continue_generation", resume, methods=["POST"]),
        Route("/flush_cache", flush, methods=["POST"]),
        Route("/load_lora_adapter", load_adapter, methods=["POST"]),
        Route("/unload_lora_adapter", unload_adapter, methods=["POST"]),
        Route("/update_weights_from_disk", load, methods=["POST"]),
        Route("/abort_request", abort, methods=["POST"]),
        Route("/init_weights_update_group", join, methods=["POST"]),
        Route("/destroy_weights_update_group", leave, methods=["POST"]),
        Route("/update_weights_from_distributed", receive, methods=["POST"]),
        Route("/update_weights_from_tensor", take, methods=["POST"]),
        Route("/update_weight_version", name_version, methods=["POST"]),
        Route("/release_memory_occupation", release, methods=["POST"]),
        Route("/resume_memory_occupation", retake, methods=["POST"]),
        Route("/model_info", info),
        Route("/server_info", settings),
        Route("/health", health),
    ]
    app = Starlette(routes=routes)
    torch.set_num_threads(1)
    app.state.state = State(options.model_path, options.weight_version)
    logging.info("The server is fired up and ready to roll!")
    uvicorn.run(app, host=options.host, port=int(options.port), log_level="warning")


if __name__ == "__main__":
    main()
