"""The experiment config: the only definition of every knob; one file per group of sections."""

from training.contracts.config.algorithm import AlgorithmConfig, ReplayConfig
from training.contracts.config.experiment import (
    ConfigError,
    CoordinateSpace,
    DesktopConfig,
    ExperimentConfig,
    ModelConfig,
    Preset,
    PromptConfig,
    SamplingConfig,
    SftConfig,
    from_yaml,
    parse_config,
    to_yaml,
)
from training.contracts.config.rewards import RewardConfig
from training.contracts.config.section import Section
from training.contracts.config.trainer import LoraConfig, OptimiserConfig

__all__ = [
    "AlgorithmConfig",
    "ConfigError",
    "CoordinateSpace",
    "DesktopConfig",
    "ExperimentConfig",
    "LoraConfig",
    "ModelConfig",
    "OptimiserConfig",
    "Preset",
    "PromptConfig",
    "ReplayConfig",
    "RewardConfig",
    "SamplingConfig",
    "Section",
    "SftConfig",
    "from_yaml",
    "parse_config",
    "to_yaml",
]
