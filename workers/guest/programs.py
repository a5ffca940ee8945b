"""Starting programs and moving files: the agent's routes that a task's setup and evaluator use."""

import asyncio
import os
import shlex
import subprocess
import time

from workers.guest.http import HttpError, Request, Response, Route, json_response
from workers.guest.session import Session, die_with_parent
from workers.guest.zygote import PROGRAMS, Zygote

MAX_OUTPUT = 1 << 20
DEFAULT_TIMEOUT_S = 120.0
POLL_S = 0.004


class Programs:
    """Launches and runs commands with the desktop's environment."""

    def __init__(self, session: Session, zygote: Zygote) -> None:
        self.session = session
        self.zygote = zygote
        self._launched: list[subprocess.Popen] = []
        self._epoch = 0

    def routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("POST", "/execute"): self.execute,
            ("POST", "/setup/execute"): self.execute,
            ("POST", "/setup/launch"): self.launch,
            ("POST", "/setup/open_file"): self.open_file,
            ("POST", "/setup/upload"): self.upload,
            ("POST", "/file"): self.read_form_file,
            ("GET", "/file"): self.read_file,
            ("PUT", "/file"): self.write_file,
            ("POST", "/list_directory"): self.list_directory,
        }

    def abandon(self) -> None:
        """Forget all programs of the trajectory; waiting calls answer with an error."""
        self._epoch += 1
        for process in self._launched:
            process.poll()
        self._launched.clear()

    # -- commands ---------------------------------------------------------------------------

    async def execute(self, request: Request) -> Response:
        """Run a command to its end: {"command": str | list, "shell": bool, "timeout": seconds}."""
        body = request.json()
        argv = command_line(body)
        timeout_s = float(body.get("timeout") or DEFAULT_TIMEOUT_S)
        started = self._epoch
        folder = self.session.layout.tmp
        # Files, not pipes: a background child that keeps stdout open must not block the answer.
        with (
            open(os.path.join(folder, f".out-{time.monotonic_ns()}"), "w+b") as out,
            open(os.path.join(folder, f".err-{time.monotonic_ns()}"), "w+b") as err,
        ):
            os.unlink(out.name)
            os.unlink(err.name)
            process = self._spawn(argv, body, stdout=out, stderr=err)
            code = await self._wait(process, timeout_s)
            if self._epoch != started:
                raise HttpError(500, "the desktop was reset while the command ran")
            answer = {"output": head_of(out), "error": head_of(err), "returncode": code}
        if code is None:
            return json_response(
                {"status": "error", "message": f"no end after {timeout_s:g} s", **answer}, 500
            )
        return json_response({"status": "success", **answer})

    async def _wait(self, process: subprocess.Popen, timeout_s: float) -> int | None:
        """Exit code, or None after killing it at the timeout."""
        deadline = time.monotonic() + timeout_s
        pause = POLL_S
        while process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                return None
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return process.returncode

    async def launch(self, request: Request) -> Response:
        """Start a program and answer at once: {"command": str | list, "shell": bool, "env": {...}}."""
        body = request.json()
        argv = command_line(body)
        self._launched = [p for p in self._launched if p.poll() is None]
        if argv[0] in PROGRAMS:
            pid = self.zygote.start(argv[0], argv[1:], self._environment(body), self._folder(body))
            return json_response({"status": "success", "pid": pid})
        process = self._spawn(argv, body, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._launched.append(process)
        return json_response({"status": "success", "pid": process.pid})

    async def open_file(self, request: Request) -> Response:
        """Open a file with the editor or a folder with the file manager: {"path": str}."""
        path = self._path(str(request.json().get("path", "")))
        if not os.path.exists(path):
            raise HttpError(404, f"no file {path}")
        program = "pcmanfm" if os.path.isdir(path) else "mousepad"
        process = self._spawn([program, path], {}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._launched.append(process)
        return json_response({"status": "success", "pid": process.pid})

    def _spawn(self, argv: list[str], body: dict, **streams) -> subprocess.Popen:
        try:
            return subprocess.Popen(
                argv,
                env=self._environment(body),
                cwd=self._folder(body),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=die_with_parent,
                **streams,
            )
        except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
            raise HttpError(500, f"cannot start {argv[0]!r}: {exc.strerror}") from exc

    def _environment(self, body: dict) -> dict[str, str]:
        extra = body.get("env") or {}
        return {**self.session.env, **{str(key): str(value) for key, value in extra.items()}}

    def _folder(self, body: dict) -> str:
        return self._path(str(body.get("working_dir") or self.session.layout.home))

    # -- files ------------------------------------------------------------------------------

    def _path(self, path: str) -> str:
        """Absolute path; ~ and relative paths are in HOME. Raises HttpError 400."""
        if not path:
            raise HttpError(400, "path is empty")
        home = self.session.layout.home
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        # OSWorld's tasks name /home/user; without a sandbox HOME is elsewhere.
        elif path.startswith("/home/user"):
            path = home + path.removeprefix("/home/user")
        return os.path.normpath(os.path.join(home, path))

    async def upload(self, request: Request) -> Response:
        """OSWorld's multipart upload: file_path, file_data."""
        fields = request.form()
        if "file_path" not in fields or "file_data" not in fields:
            raise HttpError(400, "file_path and file_data are needed")
        return self._store(self._path(fields["file_path"].decode().strip()), fields["file_data"])

    async def write_file(self, request: Request) -> Response:
        """PUT /file?path=... with the raw bytes; folders are made."""
        return self._store(self._path(request.query.get("path", "")), request.body)

    def _store(self, path: str, data: bytes) -> Response:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        return json_response({"status": "success", "path": path, "bytes": len(data)})

    async def read_file(self, request: Request) -> Response:
        return self._fetch(self._path(request.query.get("path", "")))

    async def read_form_file(self, request: Request) -> Response:
        return self._fetch(self._path(request.form().get("file_path", b"").decode().strip()))

    def _fetch(self, path: str) -> Response:
        try:
            with open(path, "rb") as file:
                return Response(file.read(), content_type="application/octet-stream")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as exc:
            raise HttpError(404, f"no file {path}") from exc

    async def list_directory(self, request: Request) -> Response:
        """Names in a folder: {"path": str} -> {"entries": [{name, is_folder, bytes}]}."""
        path = self._path(str(request.json().get("path", "")))
        if not os.path.isdir(path):
            raise HttpError(404, f"no folder {path}")
        with os.scandir(path) as found:
            entries = [
                {"name": e.name, "is_folder": e.is_dir(), "bytes": e.stat(follow_symlinks=False).st_size}
                for e in sorted(found, key=lambda e: e.name)
            ]
        return json_response({"entries": entries})


def command_line(body: dict) -> list[str]:
    """argv of a request's command. A string without `shell` is split, as OSWorld does. Raises HttpError."""
    command = body.get("command")
    if isinstance(command, list) and command:
        argv = [str(part) for part in command]
        return ["/bin/sh", "-c", shlex.join(argv)] if body.get("shell") else argv
    if isinstance(command, str) and command.strip():
        return ["/bin/sh", "-c", command] if body.get("shell") else shlex.split(command)
    raise HttpError(400, "command must be a string or a list, and not empty")


def head_of(file) -> str:
    """The first MAX_OUTPUT bytes of a command's output as text."""
    file.seek(0)
    return file.read(MAX_OUTPUT).decode("utf-8", "replace")
