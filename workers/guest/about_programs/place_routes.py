"""The task's time zone and locale: the agent's route that set-up uses."""

from workers.guest.http_server import HttpError, Request, Response, Route, json_response
from workers.guest.program_routes import DEFAULT_TIMEOUT_S, ProgramRoutes
from workers.guest.session_processes import DEFAULT_PLACE


class PlaceRoutes:
    """Changes the environment of the programs that are started from now on."""

    def __init__(self, programs: ProgramRoutes) -> None:
        self.programs = programs

    def routes(self) -> dict[tuple[str, str], Route]:
        return {("POST", "/place"): self.use_place}

    async def use_place(self, request: Request) -> Response:
        """Until the next reset: {"timezone": IANA name, "locale": name}, "" = the usual one."""
        body, session = request.json(), self.programs.session
        try:
            session.use_place(str(body.get("timezone") or ""), str(body.get("locale") or ""))
        except ValueError as exc:
            raise HttpError(400, str(exc)) from exc
        # The bus started before, and starts programs itself.
        place = [f"{name}={session.env[name]}" for name in DEFAULT_PLACE]
        await self.programs.run(["dbus-update-activation-environment", *place], {}, DEFAULT_TIMEOUT_S)
        return json_response({"status": "success"})
