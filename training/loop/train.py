"""The trainer: runs all stages of one experiment.

    python -m training.distributed.launch --ranks N -m training.loop.train --config FILE --output DIR

It runs (with `evaluation.only`: one evaluation) against a coordinator
(DESKHAND_COORDINATOR_URL and DESKHAND_COORDINATOR_TOKEN; frames from DESKHAND_FRAMES_DIR), resumes
from the newest complete checkpoint, and works without the launcher as a single process.

Exit codes and DIR/outcome.json are those of `training.contracts.trainer_exit`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from training.contracts.config import ConfigError, ExperimentConfig, from_yaml
from training.contracts.trainer_exit import ExitCode, TrainerOutcome
from training.contracts.types import Control
from training.model.cpu_threads import num_threads
from training.rollouts.coordinator_client import CoordinatorAddress, CoordinatorClient

if TYPE_CHECKING:
    from training.distributed.interrupts import TermSignal
    from training.loop.stage_context import Experiment

logger = logging.getLogger("training")


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, and turn how it ended into an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m training.loop.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--config", type=Path, required=True, help="experiment config, YAML")
    parser.add_argument("--output", type=Path, required=True, help="folder for checkpoints and weights")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    is_main = os.environ.get("RANK", "0") == "0"
    path = TrainerOutcome.path(options.output)
    try:
        config = from_yaml(options.config.read_text())
        address = CoordinatorAddress.from_environment()
        options.output.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        outcome = _train(config, options.output, address)
    except (ConfigError, ValueError, OSError) as error:
        logger.exception("the experiment cannot run")
        outcome = TrainerOutcome(exit_code=ExitCode.WRONG_SETTINGS, message=str(error))
    if is_main and options.output.is_dir():
        path.write_text(outcome.model_dump_json() + "\n")
    return outcome.exit_code


def _train(config: ExperimentConfig, output: Path, address: CoordinatorAddress) -> TrainerOutcome:
    """Run all stages. torch is imported here: bad settings fail in a moment."""
    import torch

    from training.distributed.interrupts import Interrupted, TermSignal
    from training.distributed.world import start_world, stop_world
    from training.loop.build_experiment import build_experiment
    from training.loop.run_stages import run

    term = TermSignal()
    term.install()
    if config.evaluation.only:
        return _evaluate_only(config, address, term)
    torch.set_num_threads(num_threads())
    torch.manual_seed(config.optimiser.seed)
    # SGLang's servers run so: peers of one NCCL group must agree on how they share memory, or they hang.
    os.environ.setdefault("NCCL_CUMEM_ENABLE", "0")
    world = start_world()
    experiment = None
    try:
        coordinator = coordinator_of(config, address)
        experiment = build_experiment(config, output, address, coordinator, world, term)
        run(experiment)
        experiment.secure_last()
        experiment.close()
        return TrainerOutcome(exit_code=ExitCode.FINISHED, step=experiment.state.grpo_step)
    except Interrupted as stop:
        assert experiment is not None
        step = experiment.state.grpo_step
        command = _save_when_paused(experiment, stop.command)
        experiment.close()
        return TrainerOutcome(exit_code=ExitCode.after(command), step=step)
    finally:
        stop_world()


def coordinator_of(config: ExperimentConfig, address: CoordinatorAddress) -> CoordinatorClient:
    """The trainer's client: as patient with a starting engine as the supervisor that started it."""
    return CoordinatorClient(address, engine_start_s=config.engine.start_limit_s)


def _save_when_paused(experiment: Experiment, command: Control) -> Control:
    """Save before a pause; the command in the end, since people may cancel while that waits for room."""
    from training.distributed.interrupts import Interrupted

    if command is Control.PAUSE:
        try:
            experiment.save()
            experiment.secure_last()
        except Interrupted as stop:
            return stop.command
    return command


def _evaluate_only(config: ExperimentConfig, address: CoordinatorAddress, term: TermSignal) -> TrainerOutcome:
    """As `_train`, without weights; ranks other than 0 have nothing to do."""
    from training.distributed.interrupts import Interrupted
    from training.loop.evaluate_only import evaluate_only

    try:
        if os.environ.get("RANK", "0") == "0":
            evaluate_only(config, coordinator_of(config, address), term)
    except Interrupted as stop:
        return TrainerOutcome(exit_code=ExitCode.after(stop.command))
    return TrainerOutcome(exit_code=ExitCode.FINISHED)


if __name__ == "__main__":
    sys.exit(main())
