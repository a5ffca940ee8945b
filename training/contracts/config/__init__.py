"""The experiment config: the only definition of every knob; one file per group of sections."""

from training.contracts.config.algorithm import AlgorithmConfig, RewardControl
from training.contracts.config.config_yaml import (
    ConfigError,
    from_yaml,
    laid_over,
    parse_config,
    read_yaml,
    to_yaml,
)
from training.contracts.config.desktops import PROVIDERS, DesktopConfig
from training.contracts.config.experiment import ExperimentConfig, FamilyShares, Preset, TaskConfig
from training.contracts.config.learning import LoraConfig, OptimiserConfig, ReplayConfig, SftConfig
from training.contracts.config.policy import (
    CoordinateSpace,
    EngineConfig,
    ModelConfig,
    PromptConfig,
    SamplingConfig,
)
from training.contracts.config.providers.desk_host_registry import DEFAULT_PROVIDER, FOR_DESKTOP_ENV
from training.contracts.config.providers.gateway import GatewayConfig
from training.contracts.config.providers.machine import MachineConfig
from training.contracts.config.providers.osworld import OsworldConfig
from training.contracts.config.providers.provider_info import (
    NO_KNOBS,
    Capability,
    ProviderInfo,
    ProviderSection,
)
from training.contracts.config.providers.qemu import QemuConfig
from training.contracts.config.providers.remote import RemoteConfig
from training.contracts.config.providers.windows import WindowsConfig
from training.contracts.config.reward_presets import RewardConfig, RewardPreset
from training.contracts.config.section import Section
