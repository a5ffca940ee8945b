"""How a Windows guest comes up: its agent answers, its user logs in, its screen rests.

booting (agent) -> agent_up (login typed, session answers) -> logged_in (right size, at rest) -> ready
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from training.outgoing.secret_store import SecretError, read_secret
from workers.desktops.contract import BootPhase, Endpoints, EnvError
from workers.desktops.qemu.boot_phases import POLL_S, Machine, Progress, poll_until, wait_until_screen_rests
from workers.desktops.qemu.driverless_console import DriverlessConsole
from workers.desktops.qemu.machine_identity import CONSOLE
from workers.desktops.windows.image_settings import WindowsSettings
from workers.desktops.windows.login_keys import Login, secret_typist, type_login
from workers.desktops.windows.qemu_guest_agent_client import GuestAgentClient
from workers.desktops.windows.user_session import UserSession


class LoginFailed(EnvError):
    """Raised when no user is logged in after all. Trying again could lock the account."""

    def __init__(self, login: Login | None, limit_s: float) -> None:
        hint = f"is secret {login.secret} right, and do the steps fit?" if login else "does it log in?"
        super().__init__(f"no user was logged in after {limit_s:g} s: {hint}", permanent=True)


ANSWER_LIMIT_S = 5.0
COMMAND_LIMIT_S = 30.0


async def wait_until_ready(
    machine: Machine,
    screen: tuple[int, int],
    progress: Progress,
    settings: WindowsSettings,
    secrets_folder: Path,
) -> None:
    """Wait through the phases. Raises TimeoutError, EnvError."""
    progress.enter(BootPhase.BOOTING)
    await poll_until(BootPhase.BOOTING, machine, _agent_answers)
    progress.enter(BootPhase.AGENT_UP)
    if settings.login is not None:
        await _at_rest(machine)  # keys before the login screen is drawn are lost
        await asyncio.to_thread(_log_in, machine, settings.login, secrets_folder)
    await _session_stands(machine, settings)
    progress.enter(BootPhase.LOGGED_IN)
    await asyncio.to_thread(_check_screen, machine, screen)
    await _at_rest(machine)


async def _at_rest(machine: Machine) -> None:
    """By the picture alone: this agent does not tell how busy the guest is."""
    await wait_until_screen_rests(Machine(machine.vm, ""))


async def _agent_answers(machine: Machine) -> bool:
    def ping() -> bool:
        with GuestAgentClient(machine.agent, timeout_s=ANSWER_LIMIT_S) as agent:
            return agent.ping(ANSWER_LIMIT_S)

    return await asyncio.to_thread(ping)


def _log_in(machine: Machine, login: Login, secrets_folder: Path) -> None:
    """Type the steps. Raises EnvError, permanent when the secret is the reason."""
    try:
        password = read_secret(login.secret, secrets_folder)
    except SecretError as error:
        raise EnvError(f"the login phase has no password: {error}", permanent=True) from error
    console = _console(machine)
    try:
        type_login(login, console.perform, secret_typist(password, console.type_char, login.secret))
    finally:
        console.close()


async def _session_stands(machine: Machine, settings: WindowsSettings) -> None:
    """Until the user is in. A second try would risk the account's lock, so it is an error for good."""
    login = settings.login
    limit_s = login.limit_s if login else settings.session_limit_s
    check = _check_of(settings)
    if check is None:
        return
    deadline = time.monotonic() + limit_s
    while not await asyncio.to_thread(_holds, machine, check):
        if machine.vm.has_ended:
            raise EnvError(await machine.vm.wait_dead())
        if time.monotonic() > deadline:
            raise LoginFailed(login, limit_s)
        await asyncio.sleep(POLL_S)


def _check_of(settings: WindowsSettings) -> Callable[[GuestAgentClient], bool] | None:
    """What tells that the user is in; None when nothing does."""
    login = settings.login
    if login is not None and login.check:
        argv = list(login.check)
        return lambda agent: agent.execute(argv, timeout_s=COMMAND_LIMIT_S).returncode == 0
    if settings.session_check:
        return lambda agent: UserSession(agent).windows() is not None
    return None


def _holds(machine: Machine, check: Callable[[GuestAgentClient], bool]) -> bool:
    with GuestAgentClient(machine.agent, timeout_s=COMMAND_LIMIT_S) as agent:
        try:
            return check(agent)
        except EnvError:
            return False  # the session is still coming


def _check_screen(machine: Machine, screen: tuple[int, int]) -> None:
    console = _console(machine)
    try:
        found = console.size
    finally:
        console.close()
    if found != screen:
        message = (
            f"the guest's screen is {found[0]} x {found[1]} pixels, wanted are {screen[0]} x {screen[1]}"
        )
        raise EnvError(f"{message}; set it in Windows, then register the disk again", permanent=True)


def _console(machine: Machine) -> DriverlessConsole:
    """On the console's monitor, which has no other user before the machine is ready."""
    return DriverlessConsole(Endpoints(console="qmp-slow", qmp=str(machine.vm.folder / CONSOLE)))
