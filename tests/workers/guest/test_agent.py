"""The agent inside a desktop: commands, files and limits, in OSWorld's words."""

from __future__ import annotations

import json
import urllib.parse

import pytest

from workers.desktops.contract import EnvError, ErrorKind

pytestmark = pytest.mark.desktop


def test_a_command_runs_as_a_list_as_a_split_string_and_in_a_shell(desktop):
    run = desktop.agent.execute
    assert run(["printf", "%s", "a b"]).output == "a b"
    assert run("printf '%s' 'a b'").output == "a b"
    assert run("echo $HOME; echo no >&2; exit 3", shell=True).__dict__ == {
        "returncode": 3,
        "output": f"{desktop.home}\n",
        "error": "no\n",
    }


def test_a_command_that_does_not_end_is_killed_at_its_timeout(desktop):
    with pytest.raises(EnvError, match=r"no end after 0\.3 s") as caught:
        desktop.agent.execute("sleep 60", timeout_s=0.3)
    assert caught.value.kind is ErrorKind.GUEST


def test_a_background_child_does_not_hold_up_the_answer(desktop):
    assert desktop.agent.execute("sleep 60 & echo done", shell=True, timeout_s=30).output == "done\n"


def test_a_program_that_does_not_exist_is_named(desktop):
    for call in (desktop.agent.launch, desktop.agent.execute):
        with pytest.raises(EnvError, match="cannot start 'nosuchprogram'"):
            call(["nosuchprogram"])


def test_files_travel_both_ways_and_a_missing_one_is_none(desktop):
    data = bytes(range(256)) * 100
    desktop.agent.put("~/deep/er/file.bin", data)
    assert desktop.agent.get("~/deep/er/file.bin") == data
    assert desktop.agent.get("/home/user/deep/er/file.bin") == data
    assert desktop.agent.get("deep/er/file.bin") == data
    assert desktop.agent.get("~/nothing") is None
    assert desktop.agent.get("~/deep") is None


def test_osworlds_own_requests_are_understood(desktop):
    call = desktop.agent.call
    boundary = "xyz"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="file_path"\r\n\r\n/home/user/up.txt\r\n',
        f'--{boundary}\r\nContent-Disposition: form-data; name="file_data"; filename="up.txt"\r\n\r\n',
        "body\r\n\r\n",
        f"--{boundary}--\r\n",
    ]
    kind = f"multipart/form-data; boundary={boundary}"
    assert call("POST", "/setup/upload", "".join(parts).encode(), kind=kind)[0] == 200
    form = urllib.parse.urlencode({"file_path": "/home/user/up.txt"}).encode()
    assert call("POST", "/file", form, kind="application/x-www-form-urlencoded") == (200, b"body\r\n")
    assert json.loads(call("POST", "/screen_size")[1]) == {"width": 512, "height": 384}
    answer = desktop.agent.ask("/setup/execute", {"command": ["echo", "hi"], "shell": False})
    assert answer == {"status": "success", "output": "hi\n", "error": "", "returncode": 0}
    names = desktop.agent.ask("/list_directory", {"path": "/home/user"})["entries"]
    assert {"name": "up.txt", "is_folder": False, "bytes": 6} in names
    assert desktop.agent.ask("/setup/open_file", {"path": "/home/user/up.txt"})["status"] == "success"
    assert desktop.wait_for_window("up.txt").window_class == "mousepad.Mousepad"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("GET", "/nothing", b"", 404, "no route GET /nothing"),
        ("POST", "/execute", b"{", 400, "the body is not JSON"),
        ("POST", "/execute", b"[1]", 400, "must be a JSON object"),
        ("POST", "/execute", b"{}", 400, "command must be a string or a list"),
        ("POST", "/setup/launch", b'{"command": "a \\"b"}', 500, "No closing quotation"),
        ("POST", "/setup/open_file", b'{"path": "~/none"}', 404, "no file"),
        ("POST", "/list_directory", b'{"path": "~/none"}', 404, "no folder"),
        ("PUT", "/file?path=", b"x", 400, "path is empty"),
        ("PUT", "/file?path=/usr/x", b"x", 500, "Read-only file system"),
    ],
)
def test_a_bad_request_is_answered_and_the_agent_goes_on(desktop, method, path, body, status, message):
    code, raw = desktop.agent.call(method, path, body)
    assert code == status
    assert message in json.loads(raw)["message"]
    assert desktop.agent.call("GET", "/health")[0] == 200


def test_the_sandbox_has_no_network_no_host_files_and_no_host_processes(desktop):
    run = desktop.agent.execute
    assert run("ls /sys/class/net /work /root /home 2>/dev/null", shell=True).output.split() == [
        "/home:",
        "user",
    ]
    interfaces = run("cat /proc/net/dev | tail -n +3 | cut -d: -f1", shell=True).output.split()
    assert interfaces == ["lo"]
    script = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    assert "unreachable" in run(["/usr/bin/python3", "-c", script]).error
    seen = set(run("ps -e -o comm=", shell=True).output.split())
    assert seen == {"sleep", "dbus-daemon", "sh", "ps"}, "neither X server nor agent, nothing of the host"
    assert run("id -u; whoami", shell=True).output.split() == ["1000", "user"]


def test_home_has_its_quota_and_a_process_its_limits(desktop):
    full = desktop.agent.execute("head -c 80M /dev/zero > ~/big", shell=True)
    assert full.returncode != 0
    assert len(desktop.agent.get("~/big")) <= 64 << 20
    desktop.agent.execute("rm ~/big", shell=True)
    assert desktop.agent.execute("ulimit -c; ulimit -n", shell=True).output.split() == ["0", "2048"]


def test_the_number_of_processes_is_limited_with_and_without_control_groups(desktop):
    script = (
        "import os, time\n"
        "for number in range(300):\n"
        "    try: pid = os.fork()\n"
        "    except OSError: print(number); break\n"
        "    if pid == 0: time.sleep(100)\n"
    )
    refused_at = desktop.agent.execute(["/usr/bin/python3", "-c", script]).output.strip()
    assert 200 < int(refused_at) < 256
    assert desktop.reset().killed > 100


def test_many_programs_started_and_ended_leave_no_zombie_behind(desktop):
    for _ in range(20):
        desktop.agent.launch(["true"])
    desktop.reset()
    _, raw = desktop.agent.call("GET", "/health")
    assert json.loads(raw)["programs"] == {}
    states = desktop.agent.execute("ps -eo stat= | grep -c Z", shell=True).output.strip()
    assert states == "0"
