"""Makes an experiment of one rank: model, learner, weight sync and checkpoints."""

import logging
from pathlib import Path

from training.batch.screenshot_cache import ScreenshotCache
from training.checkpoints.base_weights import BaseWeights
from training.checkpoints.store import CheckpointStore
from training.contracts.config import ExperimentConfig
from training.contracts.trainer_state import checkpoints_folder
from training.distributed.interrupts import TermSignal
from training.distributed.world import World
from training.loop.stage_context import Experiment
from training.model.load_sharded import build_policy
from training.render.renderer import Renderer
from training.rollouts.coordinator_client import CoordinatorAddress, CoordinatorClient
from training.rollouts.group_collector import GroupCollector
from training.update.learner import Learner
from training.update.microbatch_maker import TokenIds
from training.weights.sync import build_weight_sync

logger = logging.getLogger("training")


def build_experiment(
    config: ExperimentConfig,
    output: Path,
    address: CoordinatorAddress,
    coordinator: CoordinatorClient,
    world: World,
    term: TermSignal,
) -> Experiment:
    """Model, trainer, sync and checkpoints of this rank, resumed when there is a checkpoint."""
    source = Path(config.model.path)
    base = BaseWeights.of(source) if config.lora.rank else None
    directory = checkpoints_folder(config.checkpoints.directory, output)
    store = CheckpointStore(directory, config.checkpoints.keep_last, base)
    store.verify_writable()
    if (newest := store.newest()) is not None:
        store.require_base(newest, source, world)
    renderer = Renderer.from_folder(source, config.model, config.prompt)
    pixels = ScreenshotCache(renderer, directory=address.frames_directory, fetch=coordinator.frame)
    tokens = TokenIds(pad=renderer.pad_id, image_pad=renderer.image_pad_id, merge_size=renderer.merge)
    policy = build_policy(config, source, world, banned_ids=renderer.banned_ids)
    learner = Learner(policy, world, config, tokens, pixels)
    if config.algorithm.kl_coefficient > 0:
        learner.reference = build_policy(
            config, config.algorithm.reference_path, world, banned_ids=renderer.banned_ids, is_reference=True
        )
    own = coordinator if world.is_main else None
    experiment = Experiment(
        config=config,
        world=world,
        learner=learner,
        renderer=renderer,
        sync=build_weight_sync(
            learner,
            config,
            own,
            pixels=pixels,
            renderer=renderer,
            source=source,
            directory=output / "weights",
        ),
        checkpoints=store,
        source=source,
        png=pixels.png,
        coordinator=own,
        collector=GroupCollector(coordinator, term) if world.is_main else None,
    )
    if newest is not None:
        logger.info("resuming from %s", newest)
        experiment.resume(newest)
    return experiment
