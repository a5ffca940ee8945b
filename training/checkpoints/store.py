"""Checkpoints: everything that a resume needs, atomically.

NNNNN-STAGE-STEP/
    COMPLETE      written last, inside a *.tmp folder that is then renamed
    state.json    step, policy_version, data cursor, replay state, alarm history ...
    optimiser/    its tensors (torch.distributed.checkpoint: any number of processes reads it)
    rng-RANK.pt   torch's generator
    model/        plain transformers folder, fp32: resume, download, start of another experiment
    weights/      like optimiser/; stays only where adapters do, which model/ holds merged
    base.json     then weights/ holds the adapters alone: whose weights lie below them, with checksums

Older ones hold weights and optimiser together in shards/; they are read as well.
Tensors are copied to host memory and written while training goes on; a process that dies before the rename
leaves a *.tmp folder, from which no attempt resumes. One for which the disk had no room is given up, and
training goes on: its folder never appears.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors import SafetensorError
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import AsyncSaveResponse

from training.checkpoints.base_weights import BaseGone, BaseWeights, problem_of_base
from training.checkpoints.tensors import (
    OPTIMISER,
    WEIGHTS,
    PlainModel,
    adapters_of,
    holds_all_weights,
    load_optimiser,
    load_weights,
    optimiser_state,
    weights_of,
    write_model_folder,
)
from training.contracts.trainer_state import COMPLETE
from training.contracts.trainer_state import ExperimentState as ExperimentState
from training.distributed.interrupts import on_main
from training.distributed.strangers import require_own_peers
from training.distributed.world import World, barrier
from training.update.learner import Learner
from training.weights.model_folder_writer import is_weight_file as is_weight_file

logger = logging.getLogger(__name__)
WRITE_ERRORS = (OSError, RuntimeError, CheckpointException, SafetensorError)
REFUSED = ("inline_container", "No space left", "Disk quota exceeded")
"""Of a write that the disk did not take; torch's own file format only says that its position is wrong."""
NO_ROOM_BYTES = 1 << 20
"""With less free it was the room. With more there may be room again, but only once."""


class CheckpointStore:
    """The checkpoints of one experiment in one folder."""

    def __init__(self, directory: Path, keep_last: int, base: BaseWeights | None = None) -> None:
        """`base`: of adapters, the weights below them; without it checkpoints copy those."""
        self.directory = directory
        self.base = base
        self.keep_last = keep_last
        self._groups: list[dist.ProcessGroup] = []
        """One per part: their writers' agreements must not mix with each other's or the trainer's."""
        self._finisher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._saving: Future[Any] | None = None
        """On rank 0 the whole save, elsewhere this rank's shards."""
        self._was_refused = False
        """Whether the last save was refused although there is room now."""

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

    def save(self, learner: Learner, state: ExperimentState, source: Path, *, is_best: bool = False) -> Path:
        """Write a checkpoint and wait for it; returns its folder. A collective."""
        folder = self.start(learner, state, source, is_best=is_best)
        self.wait_for_save()
        return folder

    def start(self, learner: Learner, state: ExperimentState, source: Path, *, is_best: bool = False) -> Path:
        """Begin a checkpoint of `state` (its `num_saved` and best are updated). A collective.

        On return the tensors are copied to host memory, so training may go on while they are written. The
        folder that is returned exists when the save `is_idle`, unless the disk was full. At most one is
        written at a time.
        """
        self.wait_for_save()
        world = learner.world
        state.num_saved += 1
        final = self.directory / f"{state.num_saved:05d}-{state.stage}-{state.stage_step:06d}"
        if is_best:
            state.best_checkpoint = final.name
        folder = final.with_suffix(".tmp")
        if world.is_main:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        barrier()
        torch.save(torch.get_rng_state(), folder / f"rng-{world.rank}.pt")
        weights = adapters_of(learner) if self.base else weights_of(learner)
        parts = {WEIGHTS: weights, OPTIMISER: optimiser_state(learner)}
        if not self._groups:
            self._groups = [dist.new_group(backend="gloo") for _ in parts]
            require_own_peers()
        saves = [
            dcp.async_save(tensors, checkpoint_id=folder / name, process_group=group)
            for (name, tensors), group in zip(parts.items(), self._groups, strict=True)
        ]
        if not world.is_main:
            self._saving = self._finisher.submit(_results_known_to_main, saves)
        else:
            values, plain = json.dumps(asdict(state), indent=2), PlainModel.of(learner, source, self.base)

            def finish() -> None:
                _results(saves)  # every rank has written its shards
                self._write_model(folder, plain)
                (folder / "state.json").write_text(values + "\n")
                (folder / COMPLETE).write_text("")
                folder.rename(final)

            self._saving = self._finisher.submit(self._unless_full, finish, folder)
        return final

    def _unless_full(self, finish: Callable[[], None], folder: Path) -> None:
        """Rank 0: write it; without room nothing of it stays, which is reported and no error."""
        try:
            finish()
            self._was_refused = False
        except WRITE_ERRORS as error:
            is_full = shutil.disk_usage(self.directory).free < NO_ROOM_BYTES
            if not is_refused(error) or (self._was_refused and not is_full):
                raise
            self._was_refused = not is_full
            reason = str(error).strip().splitlines()[-1:]
            logger.warning("checkpoint %s given up, the disk is full: %s", folder.stem, reason)
            shutil.rmtree(folder, ignore_errors=True)

    def replace_state(
        self, folder: Path, state: ExperimentState, world: World, *, is_best: bool = False
    ) -> None:
        """Give the complete checkpoint `folder`, whose tensors are today's, a new state. A collective."""
        self.wait_for_save()
        if is_best:
            state.best_checkpoint = folder.name
        if world.is_main:
            fresh = folder / "state.json.tmp"
            fresh.write_text(json.dumps(asdict(state), indent=2) + "\n")
            fresh.replace(folder / "state.json")
        barrier()

    @property
    def is_idle(self) -> bool:
        """True when nothing is being written by this rank (rank 0: by any). Raises what went wrong in it."""
        if self._saving is None:
            return True
        if not self._saving.done():
            return False
        self._saving.result()
        return True

    def wait_for_save(self) -> None:
        """Wait for the save in flight; raises what went wrong in it. A collective when there is one."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()
            barrier()

    def _write_model(self, folder: Path, plain: PlainModel) -> None:
        """Of the weights that were saved, which it then stands for unless they have adapters."""
        if plain.base:
            plain.base.record(folder)
        write_model_folder(folder / WEIGHTS, plain, folder / "model")
        if not plain.scales:
            shutil.rmtree(folder / WEIGHTS)

    def require_base(self, folder: Path, source: Path, world: World) -> None:
        """Raise BaseGone on every rank unless what `folder` refers to is in `source`. A collective."""
        if problem := on_main(world, lambda: problem_of_base(folder, source, self.base)):
            raise BaseGone(problem)

    def load(self, folder: Path, learner: Learner) -> None:
        """Read weights, optimiser and generator into `learner`. A collective.

        Of a checkpoint that refers to a base, `learner` has it already (`require_base`).
        """
        if holds_all_weights(folder):
            self.base = None  # what it copied need not be what the model's folder holds by now
        load_weights(learner, folder)
        load_optimiser(learner, folder)
        generator = folder / f"rng-{learner.world.rank}.pt"
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
            (folder / COMPLETE).unlink()  # no longer a checkpoint, even if the removal is interrupted
            shutil.rmtree(folder, ignore_errors=True)
        for leftover in self.directory.glob("[0-9]*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)
        return doomed


def _results(saves: Sequence[Future[Any] | AsyncSaveResponse]) -> None:
    """Wait for all of them; raises what went wrong in the first that failed."""
    for saved in saves:
        assert isinstance(saved, Future), "no asynchronous staging was asked for"
        saved.result()


def is_refused(error: BaseException) -> bool:
    """Whether the disk did not take a write. Of several ranks, each of those that failed."""
    if isinstance(error, CheckpointException):
        return all(is_refused(failure) for failure, _ in error.failures.values())
    return any(words in str(error) for words in REFUSED)


def _results_known_to_main(saves: Sequence[Future[Any] | AsyncSaveResponse]) -> None:
    """Of the other ranks: what fails on one of them fails on all, and rank 0 decides what it means."""
    try:
        _results(saves)
    except WRITE_ERRORS as error:
        logger.warning("this rank's part of the checkpoint was not written: %s", str(error)[-300:])


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
