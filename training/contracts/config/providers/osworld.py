"""Provider `osworld`: xlang-ai's DesktopEnv, over our desktops or over its own providers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from training.contracts.config.providers.desk_host_registry import DEFAULT_PROVIDER, FOR_DESKTOP_ENV
from training.contracts.config.providers.provider_info import ProviderInfo, ProviderSection, System
from training.contracts.config.section import Problem, knob
from training.contracts.config.storable_values import PathText

OWN_PROVIDERS = ("docker", "vmware", "virtualbox", "aws", "azure", "aliyun", "volcengine")
"""DesktopEnv's own."""
HERE = ", ".join(FOR_DESKTOP_ENV)
PROXY_FILE = "PROXY_CONFIG_FILE"
"""Variable with the path of a JSON list of proxies: host, port, username, password."""

if TYPE_CHECKING:
    Machines = str
else:
    Machines = Literal[(*FOR_DESKTOP_ENV, *OWN_PROVIDERS)]  # the tables are the only lists of names


class OsworldConfig(ProviderSection):
    """xlang-ai's DesktopEnv sets tasks up and scores them; install it by `make osworld-env`."""

    machines: Machines = knob(
        DEFAULT_PROVIDER, f"What DesktopEnv drives: our desktops ({HERE}), or one of its own providers."
    )
    accessibility: bool = knob(
        False,
        "x11: programs publish their widgets, for evaluators of the accessibility tree; they also do where "
        "prompt.observation reads it.",
    )
    python: PathText = knob("", "Python of OSWorld's environment; empty = .venv-osworld beside the product.")
    pause_s: float = knob(
        0.3,
        "Pause after an action before the screen is looked at; OSWorld's own is 2.",
        unit="s",
        ge=0,
        le=30,
    )
    settle_s: float = knob(
        2.0, "Then wait at most this long for two equal screens; 0 = do not.", unit="s", ge=0, le=30
    )
    reset_timeout_s: float = knob(
        300.0, "Limit for reset and set-up; docker takes about 90 s.", unit="s", gt=0, le=3600
    )
    act_timeout_s: float = knob(120.0, "Limit for one action.", unit="s", gt=0, le=3600)
    evaluate_timeout_s: float = knob(
        300.0, "Limit for post-processing and evaluator.", unit="s", gt=0, le=3600
    )
    strict_setup: bool = knob(
        True, "Fail a task when the desktop refuses a set-up step; DesktopEnv itself only logs most refusals."
    )
    allow_host_code: bool = knob(
        False, "Allow the two evaluators of OSWorld that run what the agent wrote on the env worker itself."
    )
    downloads: PathText = knob(
        "", "Folder of files fetched by tasks, by their hashes; filled beforehand it makes tasks run offline."
    )
    checkout: PathText = knob("", "OSWorld checkout that relative paths of upload_file are in.")
    password_secret: str = knob(
        "", "Name of the secret with the desktop user's password; empty = OSWorld's default."
    )
    os_type: Literal["Ubuntu", "Windows"] = knob(
        "Ubuntu", "System in the machines of OSWorld's own providers."
    )
    path_to_vm: PathText = knob("", "Image or machine of OSWorld's own providers; empty = theirs.")
    region: str = knob("", "Region of OSWorld's cloud providers.")
    snapshot_name: str = knob("init_state", "Snapshot that OSWorld's own providers go back to.")
    enable_proxy: bool = knob(
        False,
        "OSWorld's own machines: tasks published with `proxy` go through the proxies of the file that "
        "PROXY_CONFIG_FILE names (list it in pass_variables).",
    )
    headless: bool = knob(True, "OSWorld's own providers: start machines without a window.")
    pass_variables: tuple[str, ...] = knob(
        (), "Environment variables that OSWorld's own providers need, by name, e.g. AWS_REGION."
    )

    def problems(self, num_desktops: int) -> Iterator[Problem]:
        if not self.enable_proxy:
            return
        if self.machine_provider:
            text = (
                f"our desktops ({HERE}) have no network: proxies are for machines of OSWorld's own providers"
            )
            yield "desktops.osworld.enable_proxy", text
        elif PROXY_FILE not in self.pass_variables:
            text = f"DesktopEnv reads its proxies from the file that {PROXY_FILE} names: list it here"
            yield "desktops.osworld.pass_variables", text

    def desktop_fields(self) -> dict[str, Any]:
        return {"accessibility": self.accessibility}

    @property
    def system(self) -> System:
        own = not self.machine_provider and self.os_type == "Windows"
        return "windows" if own else "linux"

    @property
    def machine_provider(self) -> str:
        return self.machines if self.machines in FOR_DESKTOP_ENV else ""

    @property
    def no_screen_reason(self) -> str:
        if self.machine_provider:
            return ""
        return (
            f"Machines of OSWorld's own provider {self.machines} show us screenshots only: their screen is "
            f"DesktopEnv's. OSWorld on our desktops ({HERE}) can be watched and used."
        )


OSWORLD = ProviderInfo(
    name="osworld",
    title="OSWorld",
    proof_stall_s=900,
)
