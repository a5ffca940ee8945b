"""Bodies of the policy server's POST /weights, one per step of a weight sync.

    disk:       load
    nccl, ipc:  check -> (nccl: join) -> begin -> bucket ... bucket -> commit
                                         any failure ------------------> abort, then perhaps disk's load

`check` and `join` are done once per trainer process, the rest for every version. From `begin` to `commit`
(or to a `load`) nothing is generated, so no completion is sampled with half of the weights.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Tag

from training.contracts.types import Wire

StreamName = Literal["nccl", "ipc"]


class Load(Wire):
    """Take the weights of a transformers folder, or of a LoRA adapter's for the weights of the start."""

    channel: Literal["disk"] = "disk"
    stage: Literal["load"] = "load"
    path: str
    policy_version: int


class Check(Wire):
    """Compare what the trainer will send with what the engine holds; 400 lists what does not fit."""

    channel: StreamName
    stage: Literal["check"] = "check"
    weights: list[tuple[str, list[int]]]
    """(name in transformers' words, shape) of everything that will come."""


class Join(Wire):
    """Join the process group whose rank 0 is the trainer; blocks until all have joined."""

    channel: Literal["nccl"]
    stage: Literal["join"] = "join"
    address: str
    port: int
    group: str
    world_size: int
    """1 + all ranks of all servers."""
    backend: str
    """nccl, or gloo where there is no GPU."""


class Begin(Wire):
    """Stop generating; what runs is interrupted and goes on after the commit, under new weights."""

    channel: StreamName
    stage: Literal["begin"] = "begin"
    policy_version: int


class Bucket(Wire):
    """Some of the weights; ipc: with handles, nccl: the trainer broadcasts them while this call is open."""

    channel: StreamName
    stage: Literal["bucket"] = "bucket"
    names: list[str]
    shapes: list[list[int]]
    dtype: str
    """e.g. bfloat16"""
    handles: list[str] = []
    """ipc: per rank of the trainer, the pickled handle of its flat copy, base64."""


class Commit(Wire):
    """All weights are there: forget what older ones computed, name the version, go on generating."""

    channel: StreamName
    stage: Literal["commit"] = "commit"
    policy_version: int


class Abort(Wire):
    """The trainer gave up in the middle. The engine waits for a whole set of weights."""

    channel: StreamName
    stage: Literal["abort"] = "abort"
    reason: str = ""


WeightsRequest = Load | Check | Join | Begin | Bucket | Commit | Abort


def _stage(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("stage", "load"))
    return str(getattr(value, "stage", "load"))


WEIGHTS_REQUEST = Annotated[
    Annotated[Load, Tag("load")]
    | Annotated[Check, Tag("check")]
    | Annotated[Join, Tag("join")]
    | Annotated[Begin, Tag("begin")]
    | Annotated[Bucket, Tag("bucket")]
    | Annotated[Commit, Tag("commit")]
    | Annotated[Abort, Tag("abort")],
    Discriminator(_stage),
]
"""The type of a body: pydantic chooses by `stage`."""


class WeightsAnswer(BaseModel):
    """What the policy server answers to each of them."""

    model_config = ConfigDict(extra="ignore")

    policy_version: int
    """That the engine has now."""
    is_whole: bool = True
    """False from `begin` to `commit`, and after an abort until the next load."""
    idle_s: float = 0.0
    """Seconds since its start in which the engine had no request."""


class Canary(Wire):
    """The engine's own logprobs of a fixed prompt with an image."""

    token_ids: tuple[int, ...]
    """The whole sequence, image pads expanded. [num_tokens]"""
    loss_mask: tuple[int, ...]
    """1 on its completion tokens. [num_tokens]"""
    logprobs: tuple[float, ...]
    """Nats; 0.0 where the mask is 0. [num_tokens]"""
    images: tuple[str, ...] = ()
    """PNGs in base64, in order."""
    temperature: float = 1.0
    policy_version: int
