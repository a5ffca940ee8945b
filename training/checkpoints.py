"""Checkpoints: everything that a resume needs, atomically.

NNNNN-STAGE-STEP/
    COMPLETE      written last, inside a *.tmp folder that is then renamed
    state.json    step, policy_version, data cursor, replay state, alarm history ...
    shards/       weights and optimiser (torch.distributed.checkpoint: any number of processes reads it)
    rng-RANK.pt   torch's generator
    model/        plain transformers folder: download, weight sync, start of another experiment
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp

from training.lora import plain_state
from training.parallel import World, barrier
from training.trainer import Trainer

COMPLETE = "COMPLETE"


@dataclass(slots=True, kw_only=True)
class ExperimentState:
    """Where an experiment stands; JSON beside the tensors."""

    stage: str = "start"
    """start -> sft -> grpo -> done"""
    sft_step: int = 0
    """Finished SFT steps."""
    grpo_step: int = 0
    """Finished GRPO steps."""
    policy_version: int = 0
    task_cursor: int = 0
    """Position in the task order of the next step."""
    was_evaluated_before: bool = False
    was_evaluated_after: bool = False
    best_success: float = -1.0
    """Held-out success of the best checkpoint so far; -1 = none evaluated."""
    best_checkpoint: str = ""
    """Its folder name."""
    num_saved: int = 0
    """Checkpoints written so far; numbers their folders."""
    rate_scale: float = 1.0
    """Learning rates are multiplied with it; falls at each roll-back."""
    rolled_back_to: list[str] = field(default_factory=list)
    """Checkpoints that were gone back to."""
    rolled_back_saves: list[str] = field(default_factory=list)
    """Checkpoints saved right after: the same weights under another name."""
    solve_rates: dict[str, list[float]] = field(default_factory=dict)
    """task_id -> faded [wins, trials]."""
    replay: dict[str, int] = field(default_factory=dict)
    alarms: dict[str, Any] = field(default_factory=dict)


class CheckpointStore:
    """The checkpoints of one experiment in one folder."""

    def __init__(self, directory: Path, keep_last: int) -> None:
        self.directory = directory
        self.keep_last = keep_last

    def verify_writable(self) -> None:
        """Raise ValueError that names the setting unless a file can be written there now."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            probe = self.directory / f".probe-{os.getpid()}"
            probe.write_bytes(b"deskhand")
            probe.unlink()
        except OSError as error:
            raise ValueError(
                f"checkpoints.directory: cannot write to {self.directory} ({error.strerror}); "
                "choose a writable folder or free some space"
            ) from error

    def complete(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(marker.parent for marker in self.directory.glob(f"[0-9]*/{COMPLETE}"))

    def newest(self) -> Path | None:
        """The checkpoint to resume from."""
        return next(reversed(self.complete()), None)

    def save(self, trainer: Trainer, state: ExperimentState, source: Path, *, is_best: bool = False) -> Path:
        """Write a checkpoint of `state` (its `num_saved` and best are updated). A collective."""
        world = trainer.world
        state.num_saved += 1
        step = state.sft_step if state.stage == "sft" else state.grpo_step
        final = self.directory / f"{state.num_saved:05d}-{state.stage}-{step:06d}"
        if is_best:
            state.best_checkpoint = final.name
        folder = final.with_suffix(".tmp")
        if world.is_main:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        barrier()
        tensors = _weights(trainer) | _optimiser_state(trainer)
        dcp.save(tensors, checkpoint_id=folder / "shards")
        torch.save(torch.get_rng_state(), folder / f"rng-{world.rank}.pt")
        export_model(trainer.policy.model, source, folder / "model", world)
        barrier()
        if world.is_main:
            (folder / "state.json").write_text(json.dumps(asdict(state), indent=2) + "\n")
            (folder / COMPLETE).write_text("")
            folder.rename(final)
        barrier()
        return final

    def load(self, folder: Path, trainer: Trainer) -> None:
        """Read weights, optimiser and generator into `trainer`. A collective."""
        shards = folder / "shards"
        tensors = _weights(trainer) | _optimiser_space(trainer, shards)
        dcp.load(tensors, checkpoint_id=shards)
        _fill_optimiser(trainer, tensors)
        generator = folder / f"rng-{trainer.world.rank}.pt"
        if generator.exists():
            torch.set_rng_state(torch.load(generator, weights_only=True))

    @staticmethod
    def read_state(folder: Path) -> ExperimentState:
        """The JSON part of a checkpoint."""
        return ExperimentState(**json.loads((folder / "state.json").read_text()))

    def prune(self, best: str, in_use: Collection[str] = ()) -> list[Path]:
        """Delete all but the newest `keep_last`, the best and those `in_use`; returns what was deleted.

        Rank 0 only.
        """
        old = self.complete()[: -self.keep_last]
        doomed = [folder for folder in old if folder.name != best and str(folder) not in in_use]
        for folder in doomed:
            (
                folder / COMPLETE
            ).unlink()  # no longer a checkpoint, even if the rest of the removal is interrupted
            shutil.rmtree(folder, ignore_errors=True)
        for leftover in self.directory.glob("[0-9]*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)
        return doomed


def _weights(trainer: Trainer) -> dict[str, Any]:
    """The (sharded) weights by name; loading fills them in place."""
    return {f"policy.{name}": p.detach() for name, p in trainer.policy.named_parameters()}


def _optimiser_state(trainer: Trainer) -> dict[str, Any]:
    """Every tensor that the optimiser keeps, as optimiser|PARAMETER|KEY."""
    names = {parameter: name for name, parameter in trainer.policy.named_parameters()}
    return {
        f"optimiser|{names[parameter]}|{key}": value
        for member in trainer.optimiser.members
        for parameter, state in member.state.items()
        for key, value in state.items()
        if isinstance(value, torch.Tensor)
    }


def _optimiser_space(trainer: Trainer, shards: Path) -> dict[str, Any]:
    """Empty tensors, sharded like their weights, for the optimiser state that the checkpoint holds."""
    parameters = dict(trainer.policy.named_parameters())
    space = {}
    for key, saved in dcp.FileSystemReader(shards).read_metadata().state_dict_metadata.items():
        if not key.startswith("optimiser|"):
            continue
        parameter = parameters[key.split("|")[1]]
        same = tuple(saved.size) == tuple(parameter.shape)
        space[key] = torch.zeros_like(parameter.detach()) if same else torch.zeros(tuple(saved.size))
    return space


def _fill_optimiser(trainer: Trainer, tensors: dict[str, Any]) -> None:
    names = {parameter: name for name, parameter in trainer.policy.named_parameters()}
    owners = {
        names[parameter]: (member, parameter)
        for member in trainer.optimiser.members
        for group in member.param_groups
        for parameter in group["params"]
    }
    for key, value in tensors.items():
        if key.startswith("optimiser|"):
            _, name, part = key.split("|")
            member, parameter = owners[name]
            member.state[parameter][part] = value


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def export_model(
    model: torch.nn.Module, source: Path, folder: Path, world: World, dtype: torch.dtype = torch.float32
) -> None:
    """Write a plain transformers folder: our weights, everything else as in `source`. A collective."""
    from safetensors.torch import save_file

    state = plain_state(model)
    if not world.is_main:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file() and not is_weight_file(path):
            shutil.copyfile(path, folder / path.name)
    weights = {name: tensor.to(dtype) for name, tensor in state.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def is_weight_file(path: Path) -> bool:
    """True for the files of a model folder that hold tensors."""
    return path.suffix in {".safetensors", ".bin", ".pt", ".pth"} or path.name.endswith(".index.json")
