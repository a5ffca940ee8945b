"""Running programs: the agent's routes that tasks, evaluators and acting by code use."""

import asyncio
import contextlib
import os
import shlex
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, replace
from typing import IO, Any

from workers.guest import kernel_calls
from workers.guest.file_routes import FileRoutes, program_for
from workers.guest.http_server import HttpError, Request, Response, Route, json_response
from workers.guest.kernel_calls import die_with_parent
from workers.guest.panel_zygote import PROGRAMS, PanelZygote
from workers.guest.preloaded_python import MAX_CODE, Job, PreloadedPython
from workers.guest.program_space import Door
from workers.guest.session_processes import Session

MAX_OUTPUT = 1 << 20
DEFAULT_TIMEOUT_S = 120.0
BASH_TIMEOUT_S = 100.0
TOOL_LIMIT_S = 60.0
POLL_S = 0.004
JUDGES_ENVIRONMENT = {"PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1"}
"""Python imports nothing that the trajectory left in HOME."""
PYTHONS = ("python", "python3", "/usr/bin/python", "/usr/bin/python3")


@dataclass(frozen=True)
class Outcome:
    output: bytes
    error: bytes
    returncode: int | None
    """None: it was ended at its time limit."""

    def fields(self) -> dict:
        """As OSWorld names them."""
        return {
            "output": self.output.decode("utf-8", "replace"),
            "error": self.error.decode("utf-8", "replace"),
            "returncode": self.returncode,
        }


class ProgramRoutes:
    """Launches and runs commands with the desktop's environment."""

    def __init__(
        self, session: Session, zygote: PanelZygote, interpreter: PreloadedPython, files: FileRoutes
    ) -> None:
        self.session = session
        self.zygote = zygote
        self.interpreter = interpreter
        self.files = files
        self.launched: list[subprocess.Popen] = []
        self.waited_for: set[int] = set()
        """Pids whose exit code is asked for here."""
        self._epoch = 0
        self.is_judging = False
        """The task is over: commands are an evaluator's, and programs must not reach them."""

    def routes(self) -> dict[tuple[str, str], Route]:
        return {
            ("POST", "/execute"): self.execute,
            ("POST", "/setup/execute"): self.execute,
            ("POST", "/run_python"): self.run_python,
            ("POST", "/run_bash_script"): self.run_bash_script,
            ("POST", "/evaluation"): self.begin_evaluation,
            ("POST", "/setup/launch"): self.launch,
            ("POST", "/setup/open_file"): self.open_file,
        }

    def abandon(self) -> None:
        """Forget all programs of the trajectory; waiting calls answer with an error."""
        self._epoch += 1
        for process in self.launched:
            process.poll()
        self.launched.clear()
        self.waited_for.clear()
        self.is_judging = False

    # -- commands to their end --------------------------------------------------------------

    async def execute(self, request: Request) -> Response:
        """Run a command to its end: {"command": str | list, "shell": bool, "timeout": seconds}."""
        body = request.json()
        timeout_s = float(body.get("timeout") or DEFAULT_TIMEOUT_S)
        outcome = await self.run(self.command_line(body), body, timeout_s)
        if outcome.returncode is None:
            message = f"no end after {timeout_s:g} s"
            return json_response({"status": "error", "message": message, **outcome.fields()}, 500)
        return json_response({"status": "success", **outcome.fields()})

    async def run_python(self, request: Request) -> Response:
        """Run {"code": str, "timeout": seconds} as a program of its own; answers 200 also when it fails."""
        body = request.json()
        code, timeout_s = str(body.get("code") or ""), float(body.get("timeout") or DEFAULT_TIMEOUT_S)
        if not code:
            raise HttpError(400, "code is empty")
        outcome = await self.run(["python3", "-c", code], body, timeout_s)
        return json_response(script_answer(outcome, timeout_s))

    async def run_bash_script(self, request: Request) -> Response:
        """Run {"script": str, "timeout": seconds, "working_dir"}; answers 200 also when it fails."""
        body = request.json()
        script, timeout_s = str(body.get("script") or ""), float(body.get("timeout") or BASH_TIMEOUT_S)
        if not script:
            raise HttpError(400, "script is empty")
        outcome = await self.run(["/bin/bash", "-c", script], body, timeout_s)
        return json_response(script_answer(outcome, timeout_s))

    async def begin_evaluation(self, _request: Request) -> Response:
        """From now to the next reset commands run where the trajectory's programs cannot reach them."""
        self.is_judging = "judging" not in self.session.layout.weakened
        return json_response({"status": "success"})

    async def tool(self, name: str) -> bytes:
        """Output of one of our own tools. Raises HttpError 500 with its last words."""
        outcome = await self._run_in_files({"tool": name, "arguments": []}, {}, TOOL_LIMIT_S)
        if outcome.returncode != 0:
            words = outcome.error.decode("utf-8", "replace").strip()[-400:]
            words = words or f"no end after {TOOL_LIMIT_S:g} s"
            raise HttpError(500, f"{name}: {words}")
        return outcome.output

    async def run(self, argv: list[str], body: dict, timeout_s: float) -> Outcome:
        """A command's outcome; Python code runs in the interpreter that is loaded already."""
        if argv[0] in PYTHONS and argv[1:2] == ["-c"] and len(argv) > 2 and len(argv[2]) < MAX_CODE:
            return await self._run_in_files({"code": argv[2], "arguments": argv[3:]}, body, timeout_s)
        return await self._run_in_files(argv, body, timeout_s, limit=MAX_OUTPUT)

    async def _run_in_files(
        self, what: "list[str] | dict", body: dict, timeout_s: float, limit: int = -1
    ) -> Outcome:
        """Files, not pipes: a background child that keeps stdout open must not block the answer."""
        started = self._epoch
        # In memory: programs see no name of them.
        with os.fdopen(os.memfd_create("out"), "w+b") as out, os.fdopen(os.memfd_create("err"), "w+b") as err:
            process: subprocess.Popen | Job
            if isinstance(what, dict):
                process = await self.interpret(what, body, out.fileno(), err.fileno())
            else:
                process = self._spawn(what, body, self._door(is_tool=False), stdout=out, stderr=err)
            code = await self.wait(process, timeout_s)
            self.waited_for.discard(process.pid)
            if self.is_judging and self.session.space:
                self.session.space.end_judges()
            if self._epoch != started:
                raise HttpError(500, "the desktop was reset while the command ran")
            return Outcome(head_of(out, limit), head_of(err, limit), code)

    async def interpret(self, what: dict, body: dict, stdout: int, stderr: int) -> Job:
        """Start {"code"} or {"tool"} with {"arguments"} in the Python that is loaded already."""
        request = {**what, "env": self._environment(body), "cwd": self._folder(body)}
        request["door"] = self._door(is_tool="tool" in what)
        return await self.interpreter.start(request, stdout, stderr)

    async def wait(self, process: "subprocess.Popen | Job", timeout_s: float) -> int | None:
        """Exit code, or None after killing it at the timeout."""
        if isinstance(process, Job):
            try:
                async with asyncio.timeout(timeout_s):
                    await process.ended.wait()
            except TimeoutError:
                process.kill()
                await process.ended.wait()
                return None
            return process.returncode
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

    # -- programs that stay -----------------------------------------------------------------

    async def launch(self, request: Request) -> Response:
        """Start a program and answer at once: {"command": str | list, "shell": bool, "env": {...}}."""
        body = request.json()
        argv = self.command_line(body)
        if argv[0] in PROGRAMS:
            door = asdict(self.session.door) if self.session.door else None
            pid = self.zygote.start(argv[0], argv[1:], self._environment(body), self._folder(body), door)
            return json_response({"status": "success", "pid": pid})
        return json_response({"status": "success", "pid": self.keep_running(argv, body).pid})

    async def open_file(self, request: Request) -> Response:
        """Open a file with the program for its kind, a folder with the file manager: {"path": str}."""
        path = self.files.path(str(request.json().get("path", "")))
        if not self.files.inside.exists(path):
            raise HttpError(404, f"no file {path}")
        program = "pcmanfm" if self.files.inside.is_folder(path) else program_for(path)
        process = self.keep_running([program, path], {})
        return json_response({"status": "success", "pid": process.pid})

    def keep_running(self, argv: list[str], body: dict) -> subprocess.Popen:
        """Start a program that may outlive the request."""
        self.collect()
        process = self._spawn(argv, body, None, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.launched.append(process)
        return process

    def collect(self) -> None:
        """Forget the launched programs that have ended."""
        ended = {p.pid for p in self.launched if p.poll() is not None}
        self.launched = [p for p in self.launched if p.pid not in ended]
        self.waited_for -= ended

    def _spawn(self, argv: list[str], body: dict, door: "dict | None", **streams: Any) -> subprocess.Popen:
        """Start a program, among the trajectory's unless `door` says where else."""
        inside = Door(**door) if door else self.session.door
        folder = self._folder(body)
        born = kernel_calls.children_go_to(inside.first) if inside else contextlib.nullcontext()
        try:
            with born:
                process = subprocess.Popen(
                    argv,
                    env=self._environment(body),
                    cwd=None if inside else folder,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=(lambda: inside.pass_through(folder)) if inside else die_with_parent,
                    **streams,
                )
        except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
            raise HttpError(500, f"cannot start {argv[0]!r}: {exc.strerror}") from exc
        except subprocess.SubprocessError as exc:  # of preexec_fn only this is reported
            raise HttpError(500, f"cannot start {argv[0]!r} in {folder}") from exc
        self.waited_for.add(process.pid)
        return process

    def _door(self, *, is_tool: bool) -> "dict | None":
        """Where a command that is waited for is born: our own tools are out of programs' reach, too."""
        door = self.session.door
        return asdict(replace(door, judging=self.is_judging or is_tool)) if door else None

    # -- what a request means ---------------------------------------------------------------

    def _environment(self, body: dict) -> dict[str, str]:
        extra = body.get("env") or {}
        own = JUDGES_ENVIRONMENT if self.is_judging else {}
        return {**self.session.env, **own, **{str(key): str(value) for key, value in extra.items()}}

    def _folder(self, body: dict) -> str:
        return self.files.path(str(body.get("working_dir") or self.session.layout.home))

    def command_line(self, body: dict) -> list[str]:
        """argv of a request's command. Raises HttpError.

        As OSWorld does it: a string without `shell` is split, and ~/ at the start of a part is HOME.
        """
        command = body.get("command")
        if isinstance(command, list) and command:
            argv = [str(part) for part in command]
            if body.get("shell"):
                return ["/bin/sh", "-c", shlex.join(argv)]
        elif isinstance(command, str) and command.strip():
            if body.get("shell"):
                return ["/bin/sh", "-c", command]
            argv = shlex.split(command)
        else:
            raise HttpError(400, "command must be a string or a list, and not empty")
        home = self.session.layout.home
        argv = [home + part[1:] if part.startswith("~/") else part for part in argv]
        if argv[0] == "python" and shutil.which("python") is None:
            argv[0] = "python3"
        return argv


def script_answer(outcome: Outcome, timeout_s: float) -> dict:
    """A script's outcome under all the names that OSWorld's callers look for."""
    fields = outcome.fields()
    code = -1 if outcome.returncode is None else outcome.returncode
    if outcome.returncode is None:
        fields["error"] += f"no end after {timeout_s:g} s"
    status = "success" if code == 0 else "error"
    message = fields["output"] + fields["error"]
    return {"status": status, "message": message, **fields, "returncode": code, "return_code": code}


def head_of(file: IO[bytes], limit: int = -1) -> bytes:
    """The first bytes of a program's output, -1 = all."""
    file.seek(0)
    return file.read(limit)
