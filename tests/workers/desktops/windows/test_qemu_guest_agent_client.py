"""The guest agent's protocol against a real qemu-ga, and against ports that misbehave."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.workers.qemu_guest_agents import running_agent, scripted_agent
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.windows.guest_platforms import PLATFORMS
from workers.desktops.windows.qemu_guest_agent_client import FILE_CHUNK, GuestAgentClient


@pytest.fixture
def agent(short_dir: Path) -> Iterator[GuestAgentClient]:
    with running_agent(short_dir) as path, GuestAgentClient(str(path)) as client:
        yield client


def test_a_command_gives_its_exit_code_and_both_outputs(agent):
    result = agent.execute("echo out; echo err >&2; exit 3", shell=True)
    assert (result.returncode, result.output, result.error) == (3, "out\n", "err\n")
    assert agent.execute(["printf", "%s", "a b"]).output == "a b"
    assert agent.execute("printf '%s' 'a b'").output == "a b"


def test_a_command_that_a_signal_ends_has_a_negative_code(agent):
    assert agent.execute("kill -9 $$", shell=True).returncode == -9


def test_output_that_is_no_text_does_not_break_the_answer(agent):
    assert agent.execute(["printf", r"a\377b"]).output == "a\ufffdb"


def test_a_file_comes_back_as_it_was_written(agent, short_dir):
    data = bytes(range(256)) * (FILE_CHUNK // 128)
    path = str(short_dir / "new folder" / "data.bin")
    agent.put(path, data)
    assert agent.get(path) == data
    agent.put(path, b"")
    assert agent.get(path) == b""


def test_a_missing_file_is_none_and_an_unreadable_one_is_an_error(agent, short_dir):
    assert agent.get(str(short_dir / "missing")) is None
    with pytest.raises(EnvError, match="guest-file-") as caught:
        agent.get(str(short_dir))
    assert caught.value.kind is ErrorKind.GUEST


def test_a_program_that_is_not_there_is_the_guests_fault(agent):
    with pytest.raises(EnvError, match="guest-exec") as caught:
        agent.execute(["/no/such/program"])
    assert caught.value.kind is ErrorKind.GUEST


def test_a_program_that_does_not_end_is_reported(agent):
    with pytest.raises(EnvError, match="sleep did not end") as caught:
        agent.execute(["sleep", "3"], timeout_s=0.1)
    assert caught.value.kind is ErrorKind.GUEST
    assert agent.execute(["true"]).returncode == 0


def test_a_started_program_goes_on_with_its_environment(agent, short_dir):
    mark = short_dir / "mark"
    assert agent.launch(["/bin/sh", "-c", f"echo $GREETING $DISPLAY > {mark}"], env={"GREETING": "hi"}) > 0
    wait_and_read = f"until [ -s {mark} ]; do sleep 0.05; done; cat {mark}"
    assert agent.execute(wait_and_read, shell=True).output == "hi :0\n"


def test_it_knows_its_guests_system(agent):
    assert agent.platform == "linux"


def test_answers_to_an_earlier_owner_of_the_port_are_not_taken_for_ones_own(short_dir):
    """A serial port has no sessions: what was asked before a worker died is answered to the next one."""

    def answer(request: dict) -> bytes:
        if request["execute"] == "guest-sync-delimited":
            old = b'{"return": {"pid": 7}}\n\xff{"return": 12}\n'
            return old + b"\xff" + json.dumps({"return": request["arguments"]["id"]}).encode() + b"\n"
        return b'{"return": {"mine": 1}}\n'

    with scripted_agent(short_dir / "s", answer), GuestAgentClient(str(short_dir / "s")) as client:
        assert client.call("guest-ping") == {"mine": 1}


def test_a_refusal_keeps_the_connection(agent):
    with pytest.raises(EnvError, match="guest-shutdown"):
        agent.call("guest-shutdown")
    assert agent.ping()


def test_a_port_without_an_agent_is_an_infrastructure_error(short_dir):
    with (
        scripted_agent(short_dir / "s", lambda request: b"") as requests,
        GuestAgentClient(str(short_dir / "s")) as client,
    ):
        with pytest.raises(EnvError, match="does not answer guest-ping") as caught:
            client.call("guest-ping", timeout_s=0.2)
        assert caught.value.kind is ErrorKind.INFRA
        assert not client.ping(timeout_s=0.2)
    assert requests[0]["execute"] == "guest-sync-delimited"
    with pytest.raises(EnvError, match="does not answer"):
        GuestAgentClient(str(short_dir / "nobody")).call("guest-ping", timeout_s=0.2)


@pytest.mark.parametrize("rubbish", [b"not json\n", b"[1]\n", b'\xff\xfe{"return": 1}\n'])
def test_rubbish_from_the_guest_is_an_infrastructure_error(short_dir, rubbish):
    def answer(request: dict) -> bytes:
        if request["execute"] == "guest-sync-delimited":
            return (
                b'{"return": {}}\n\xff' + json.dumps({"return": request["arguments"]["id"]}).encode() + b"\n"
            )
        return rubbish

    with (
        scripted_agent(short_dir / "s", answer),
        GuestAgentClient(str(short_dir / "s")) as client,
        pytest.raises(EnvError, match="does not answer guest-ping") as caught,
    ):
        client.call("guest-ping", timeout_s=5)
    assert caught.value.kind is ErrorKind.INFRA


def windows_agent(short_dir: Path, files: dict[str, str], programs: dict[str, tuple[int, str]]):
    """The answers that a Windows guest gives, for what the client must ask there."""
    import base64

    started: list[list[str]] = []

    def answer(request: dict) -> bytes:
        given = request.get("arguments", {})
        match request["execute"]:
            case "guest-sync-delimited":
                return b"\xff" + json.dumps({"return": given["id"]}).encode() + b"\n"
            case "guest-get-osinfo":
                result: object = {"id": "mswindows"}
            case "guest-exec":
                started.append([given["path"], *given["arg"]])
                result = {"pid": len(started)}
            case "guest-exec-status":
                argv = started[given["pid"] - 1]
                code, text = programs.get(argv[0], (0, ""))
                result = {
                    "exited": True,
                    "exitcode": code,
                    "out-data": base64.b64encode(text.encode()).decode(),
                }
            case "guest-file-open" if given["path"] not in files and given["mode"] == "r":
                return b'{"error": {"class": "GenericError", "desc": "failed to open file"}}\n'
            case _:
                result = {}
        return json.dumps({"return": result}).encode() + b"\n"

    return scripted_agent(short_dir / "s", answer), started


def test_a_windows_guest_is_asked_in_its_own_words(short_dir):
    serving, started = windows_agent(short_dir, {}, {"cmd.exe": (0, "")})
    with serving, GuestAgentClient(str(short_dir / "s")) as client:
        assert client.platform == "windows"
        client.execute('reg.exe query "HKCU\\Control Panel" /s')
        client.execute("Get-Date", shell=True)
        assert client.get("C:\\Work\\none.txt") is None
    assert started[0] == ["reg.exe", "query", "HKCU\\Control Panel", "/s"]
    assert started[1][:4] == ["powershell.exe", "-NoProfile", "-NonInteractive", "-EncodedCommand"]
    assert started[2] == ["cmd.exe", "/d", "/c", "if", "exist", "C:\\Work\\none.txt", "(echo", "yes)"]


def test_a_home_folder_in_a_path_is_refused_on_windows():
    with pytest.raises(EnvError, match="write the whole path"):
        PLATFORMS["windows"].expand("~/note.txt")
