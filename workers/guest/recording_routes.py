"""Video of the screen by ffmpeg, where it is installed: OSWorld's start_recording and end_recording."""

import os
import shutil
import signal
import subprocess

from workers.guest.file_routes import FileRoutes
from workers.guest.http_server import HttpError, Request, Response, Route, json_response
from workers.guest.program_routes import ProgramRoutes
from workers.guest.session_processes import Session

FRAMES_PER_S = 10
END_LIMIT_S = 30.0
MISSING = "ffmpeg is not installed in this desktop; the image debian-office has it"


class RecordingRoutes:
    """At most one recording at a time."""

    def __init__(self, session: Session, programs: ProgramRoutes, files: FileRoutes) -> None:
        self.session = session
        self.programs = programs
        self.files = files
        self._process: subprocess.Popen | None = None

    def routes(self) -> dict[tuple[str, str], Route]:
        return {("POST", "/start_recording"): self.start, ("POST", "/end_recording"): self.end}

    @property
    def _path(self) -> str:
        return os.path.join(self.session.layout.tmp, "recording.mp4")

    async def start(self, _request: Request) -> Response:
        if shutil.which("ffmpeg") is None:
            raise HttpError(500, MISSING)
        if self._process is not None and self._process.poll() is None:
            raise HttpError(400, "a recording is running already")
        layout = self.session.layout
        command = [
            "ffmpeg", "-y", "-loglevel", "error", "-f", "x11grab", "-draw_mouse", "1",
            "-video_size", f"{layout.width}x{layout.height}", "-framerate", str(FRAMES_PER_S),
            "-i", self.session.env["DISPLAY"], "-c:v", "libx264", "-preset", "ultrafast",
            "-pix_fmt", "yuv420p", self._path,
        ]  # fmt: skip
        self._process = self.programs.keep_running(command, {})
        return json_response({"status": "success", "message": "recording"})

    async def end(self, _request: Request) -> Response:
        """Stop and answer the video."""
        if self._process is None:
            raise HttpError(400, "no recording was started")
        process, self._process = self._process, None
        process.send_signal(signal.SIGINT)  # ffmpeg writes the end of the file then
        await self.programs.wait(process, END_LIMIT_S)
        return self.files.fetch(self._path, "video/mp4")
