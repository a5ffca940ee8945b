"""The experiment config: the only definition of every knob; one file per group of sections."""

from training.contracts.config.desktops import (
    OWN_DESKTOPS,
    DesktopConfig,
    GatewayConfig,
    MachineConfig,
    OsworldConfig,
    QemuConfig,
    RemoteConfig,
    WindowsConfig,
)
from training.contracts.config.experiment import ExperimentConfig, Preset
from training.contracts.config.learning import (
    AlgorithmConfig,
    LoraConfig,
    OptimiserConfig,
    ReplayConfig,
    SftConfig,
)
from training.contracts.config.parse import ConfigError, from_yaml, parse_config, to_yaml
from training.contracts.config.policy import (
    CoordinateSpace,
    EngineConfig,
    ModelConfig,
    PromptConfig,
    SamplingConfig,
)
from training.contracts.config.rewards import RewardConfig
from training.contracts.config.section import Section

__all__ = [
    "OWN_DESKTOPS",
    "AlgorithmConfig",
    "ConfigError",
    "CoordinateSpace",
    "DesktopConfig",
    "EngineConfig",
    "ExperimentConfig",
    "GatewayConfig",
    "LoraConfig",
    "MachineConfig",
    "ModelConfig",
    "OptimiserConfig",
    "OsworldConfig",
    "Preset",
    "PromptConfig",
    "QemuConfig",
    "RemoteConfig",
    "ReplayConfig",
    "RewardConfig",
    "SamplingConfig",
    "Section",
    "SftConfig",
    "WindowsConfig",
    "from_yaml",
    "parse_config",
    "to_yaml",
]
