"""What the agent of a virtual machine can do beyond a sandbox's: its clock, its randomness, its user."""

import os
import pwd
import random

from workers.guest.http_server import HttpError, Request, Response, Route, json_response
from workers.guest.root_helper import RootHelper, RootHelperError


def become(user: str) -> None:
    """Give up root for good and be this user."""
    account = pwd.getpwnam(user)
    os.initgroups(user, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


class MachineRoutes:
    """Routes that a clone's host calls right after it woke up."""

    def __init__(self, keeper: RootHelper) -> None:
        self.keeper = keeper

    def routes(self) -> dict[tuple[str, str], Route]:
        return {("POST", "/clock"): self.clock, ("POST", "/reseed"): self.reseed}

    async def clock(self, request: Request) -> Response:
        """Set the wall clock: {"unix_s": seconds since the epoch} -> {"moved_s"}."""
        return self._ask("set_clock", request.json()["unix_s"])

    async def reseed(self, request: Request) -> Response:
        """Fresh randomness: {"entropy": hex of at least 32 bytes} -> {"bytes"}."""
        answer = self._ask("reseed", request.json()["entropy"])
        random.seed()
        return answer

    def _ask(self, call: str, argument: object) -> Response:
        try:
            return json_response({"status": "success", **self.keeper.ask(call, argument)})
        except RootHelperError as exc:
            raise HttpError(400, str(exc)) from exc
