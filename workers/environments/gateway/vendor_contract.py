"""What a sandbox cluster must offer; wrap a vendor's SDK in such a class and name its factory in the config.

    desktops:
      provider: gateway
      gateway: {vendor: "our_company.sandboxes:make_vendor", token_secret: sandbox-token}

    def make_vendor(knobs: GatewayConfig, token: str) -> SandboxVendor: ...

Rules that every implementation keeps:
- `create` with a key that is known answers the same sandbox: it is asked again after a lost answer.
- No free sandbox is AtCapacity with what the cluster says of queue and time; the trajectory is then parked.
- `delete` of what is gone is fine. `owned` tells every sandbox with the owner's label.
- Every other failure is an EnvError: kind infra when trying elsewhere may help, `permanent` when only a
  person can help (wrong token). The implementation itself tries 5xx answers again.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from training.contracts.types import Action
from workers.desktops.agent_contract import ExecResult


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRequest:
    image: str
    """The vendor's name of it; "" = its default."""
    width: int
    """Of the screen, pixels."""
    height: int
    owner: str
    """Label by which we find our sandboxes again."""
    key: str
    """Idempotency key; also the sandbox's place in the cluster's queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    sandbox_id: str
    session_id: str
    """Goes with every call into the sandbox."""
    owner: str
    key: str
    width: int
    height: int


class SandboxVendor(Protocol):
    """One account at one cluster. One thread uses it."""

    def create(self, request: SandboxRequest) -> Sandbox:
        """Start a sandbox and wait until its screen is there. Raises AtCapacity or EnvError."""

    def owned(self, owner: str) -> list[Sandbox]:
        """Running sandboxes with this label."""

    def delete(self, sandbox: Sandbox) -> None:
        """End it. Idempotent."""

    def screenshot(self, sandbox: Sandbox) -> bytes:
        """PNG (or JPEG) of the whole screen now."""

    def input(self, sandbox: Sandbox, action: Action) -> None:
        """Do one action. EnvError of kind task = it makes no sense here, nothing was done."""

    def execute(
        self, sandbox: Sandbox, command: str | list[str], *, shell: bool, timeout_s: float
    ) -> ExecResult:
        """Run a command in the sandbox to its end, as the user of its desktop."""

    def launch(self, sandbox: Sandbox, command: str | list[str], *, shell: bool) -> None:
        """Start a program on its desktop."""

    def close(self) -> None:
        """Disconnect; sandboxes stay."""


@runtime_checkable
class ReadingVendor(Protocol):
    """A vendor whose sandboxes also say what is on the screen (`prompt.observation`)."""

    def accessibility(self, sandbox: Sandbox) -> str:
        """OSWorld's XML of all widgets. Raises EnvError within seconds."""

    def terminal(self, sandbox: Sandbox) -> str:
        """Text of the terminal in front; "" when there is none."""
