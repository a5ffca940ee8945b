"""`DesktopEnv`: what an env worker does with one leased desktop.

    from training.contracts.types import Action
    from workers.desktops.contract import DesktopSpec
    from workers.desktops.host.client import DeskHostClient
    from workers.desktops.leased_desktop import DesktopEnv

    with DeskHostClient("var/deskhost/desk.sock") as client:        # `python -m workers.desktops.host` runs
        lease = client.acquire("x11", DesktopSpec(width=512, height=384), holder="me", ttl_s=30)
        env = DesktopEnv(client, lease)
        try:
            env.reset()                                  # a clean desktop, 20-50 ms
            env.agent.put("~/note.txt", b"hello")        # setup, evaluators: files and commands
            env.agent.launch(["mousepad", "~/note.txt"])  # no shell: "~" is a path of put/get only
            env.wait_for_window("Mousepad")
            before = env.observe()                       # Frame(png, width, height, sha256, ...)
            env.act(Action(kind="click", x=200, y=150))
            after = env.observe()                        # waits until the screen has reacted and rests
            env.agent.execute("ls ~", shell=True).output
        finally:
            env.close()                                  # gives the lease back; the host cleans up

Life:  made -> reset -> (act, observe)* -> reset ... -> closed.
Not thread-safe; the lease must be renewed meanwhile (`workers.desktops.host.client.LeaseKeeper` does it).
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Self

from workers.desktops.agent_contract import Agent
from workers.desktops.console_contract import Console
from workers.desktops.contract import EnvError, ErrorKind, ResetReport
from workers.desktops.driven_desktop import Desktop
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import DesktopInfo, KeptSnapshot, Lease
from workers.desktops.registry import open_agent, open_console
from workers.desktops.screen_settling import AT_ONCE, wait_until_settled


class DesktopEnv(Desktop):
    """reset / act / observe / close over one leased desktop."""

    def __init__(self, client: DeskHostClient, lease: Lease) -> None:
        self._client = client
        self.lease = lease
        self._console: Console | None = None
        self._agent: Agent | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- life -------------------------------------------------------------------------------

    def reset(self) -> ResetReport:
        """A clean desktop, rebuilt by the host when needed (also after it died). Raises EnvError."""
        result = self._client.reset(self.lease.desktop.desktop_id, self.lease.lease_id)
        self._switch_to(result.desktop)
        return result.report

    def prepare(self, key: str, setup: Callable[[], None]) -> bool:
        """The state that `setup` makes on a clean desktop, run only once per key: then it is cloned.

        Every desktop prepared with one key starts from identical bits. Only for providers with
        Capability.SNAPSHOT. True when nothing had to be run. Raises EnvError, and what `setup` raises.
        """
        desktop_id, lease_id = self.lease.desktop.desktop_id, self.lease.lease_id
        prepared = self._client.prepare(desktop_id, lease_id, key)
        self._switch_to(prepared.desktop)
        if not prepared.is_ready:
            setup()
            if self._pending.limit_s > 0:
                wait_until_settled(self.console, self._pending)
            self._disconnect()  # no open connection may be part of the saved state
            self._switch_to(self._client.keep(desktop_id, lease_id).desktop)
        return prepared.is_ready

    def snapshot(self, label: str) -> KeptSnapshot:
        """Save the desktop as it is now and go on. Only for providers with Capability.SNAPSHOT."""
        self._disconnect()  # no open connection may be part of the saved state
        return self._client.snapshot(self.lease.desktop.desktop_id, self.lease.lease_id, label)

    def wake(self, name: str) -> None:
        """Go on where a snapshot was taken, here or on another desktop of this host. Raises EnvError."""
        result = self._client.wake(self.lease.desktop.desktop_id, self.lease.lease_id, name)
        self._switch_to(result.desktop)

    def _switch_to(self, desktop: DesktopInfo) -> None:
        """The lease's desktop is clean; it may be another one, or a new generation, at another place."""
        before, self.lease = self.lease.desktop, self.lease.model_copy(update={"desktop": desktop})
        if (desktop.desktop_id, desktop.generation) != (before.desktop_id, before.generation):
            self._disconnect()
        if self._console is not None:
            self._console.after_reset()
        self._pending = AT_ONCE
        if self._late is not None:
            self._late.forget()

    def close(self) -> None:
        """Disconnect and give the lease back. Idempotent; a host that is gone does not matter here."""
        if self._closed:
            return
        self._closed = True
        self._disconnect()
        with contextlib.suppress(EnvError):
            self._client.release(self.lease.lease_id)

    def _disconnect(self) -> None:
        if self._console is not None:
            self._console.close()
        if self._agent is not None:
            self._agent.close()
        self._console = self._agent = None

    # -- connections, made on first use -----------------------------------------------------

    @property
    def provider(self) -> str:
        return self.lease.desktop.provider

    @property
    def console(self) -> Console:
        """Its screen and input."""
        if self._console is None:
            with self._with_host_reason():
                self._console = open_console(self.lease.desktop.endpoints)
        return self._console

    @property
    def agent(self) -> Agent:
        """execute, launch, put, get inside the desktop."""
        if self._agent is None:
            self._agent = open_agent(self.lease.desktop.endpoints)
        return self._agent

    @property
    def home(self) -> str:
        """HOME as programs in the desktop see it."""
        return self.lease.desktop.endpoints.home

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.console.size

    @contextlib.contextmanager
    def _with_host_reason(self) -> Iterator[None]:
        """Add what the host knows to an error of a lost desktop."""
        try:
            yield
        except EnvError as exc:
            if exc.kind is not ErrorKind.INFRA:
                raise
            self._disconnect()
            reason = self._client.why_dead(self.lease.desktop.desktop_id)
            raise EnvError(f"{exc}. {reason}" if reason else str(exc)) from exc
