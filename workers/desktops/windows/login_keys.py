"""Logging in as a phase of a machine's start: keys through the monitor, the password from the secret store.

The password exists in three places only: the store, this module's local variables, and the key events that
QEMU takes. It is no `Action`, so nothing that records actions can meet it, and errors name the secret only.
"""

import time
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field, field_validator

from training.actions.errors import ActionTextError
from training.actions.parse import keyboard_tags
from training.actions.parse.argument_values import Points
from training.contracts.types import Action
from training.outgoing.secret_store import NAME
from workers.desktops.console_contract import ActionRefused
from workers.desktops.contract import EnvError

PASSWORD = "password"
"""The step that types the secret."""
WINDOWS_STEPS = ("sendkey ctrl-alt-delete", "wait 3", PASSWORD, "sendkey ret")
NO_POINTS = Points((1, 1), (1, 1))
BETWEEN_STEPS_S = 0.3
"""A login screen draws its next field in this time."""


class Login(BaseModel):
    """`login` of a Windows image's image.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret: str = Field(pattern=f"^{NAME.pattern}$")
    """Name in the secret store; never the password itself."""
    steps: tuple[str, ...] = WINDOWS_STEPS
    """Keyboard verbs in order; one of them is "password"."""
    check: tuple[str, ...] = ()
    """Command that ends with 0 once the user is in; empty = the user's session answers (install.ps1)."""
    limit_s: float = Field(default=300.0, gt=0, le=3600)
    """How long logging in may take."""

    @field_validator("steps")
    @classmethod
    def _are_verbs(cls, steps: tuple[str, ...]) -> tuple[str, ...]:
        if steps.count(PASSWORD) != 1:
            raise ValueError(f'exactly one step must be "{PASSWORD}"')
        for step in steps:
            if step != PASSWORD:
                action_of(step)
        return steps


def action_of(step: str) -> Action:
    """The action of one step. Raises ValueError."""
    try:
        actions = keyboard_tags.parse(f"<action>{step}</action>", NO_POINTS).actions
    except ActionTextError as error:
        raise ValueError(f"{step!r}: {error}") from error
    if len(actions) > 1:
        raise ValueError(f"{step!r}: one verb a step")
    return actions[0]


def type_login(login: Login, perform: Callable[[Action], None], type_secret: Callable[[], None]) -> None:
    """Do the steps. `type_secret` types the password without anybody else seeing it."""
    for step in login.steps:
        if step == PASSWORD:
            type_secret()
        else:
            perform(action_of(step))
        time.sleep(BETWEEN_STEPS_S)


def secret_typist(password: str, send_char: Callable[[str], None], secret: str) -> Callable[[], None]:
    """A function that types `password`; its errors name the secret, not its letters."""

    def type_it() -> None:
        try:
            for char in password:
                send_char(char)
        except ActionRefused:
            # Not chained: the cause names the letter.
            message = f"secret {secret}: it holds a letter that a US keyboard does not have"
            raise EnvError(message, permanent=True) from None

    return type_it
