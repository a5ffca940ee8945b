"""`manage.py up` as a user has it: a whole installation on free ports."""

import asyncio
import os
import signal
import socket
import subprocess
import sys

import httpx
import kombu.exceptions
import psutil
import pytest
import redis

from testing.private_installation import REPOSITORY, Instance
from testing.watch_installation import wait_for
from webapp.lib.supervisor.orphans import marked
from webapp.lib.supervisor.queue_probe import queue_executes


@pytest.fixture(scope="module")
def instance():
    with Instance(without=["deskhost"], slots=2, env_workers=1) as running:
        yield running


def pid_of(instance, name):
    prefix = f"{instance.folder}|{name}|"
    pids = [pid for pid, mark in marked() if mark.startswith(prefix)]
    return pids[0] if pids else None


def test_everything_is_ready_and_both_queues_execute(instance):
    assert httpx.get(f"{instance.url}/healthz", timeout=30).json()["status"] == "ok"
    assert instance.queues() == {"gpu": True, "env": True}


def test_the_first_login_signs_in(instance):
    username, password = instance.credentials
    with httpx.Client(base_url=instance.url, follow_redirects=False, timeout=60) as browser:
        page = browser.get("/login/")
        assert page.status_code == 200
        token = browser.cookies["csrftoken"]
        form = {"username": username, "password": password, "csrfmiddlewaretoken": token}
        answer = browser.post("/login/", data=form, headers={"Referer": f"{instance.url}/login/"})
        assert answer.status_code == 302
        assert "deskhand_session" in browser.cookies


def test_secrets_and_login_are_readable_by_their_owner_only(instance):
    files = [*(instance.folder / "secrets").iterdir(), instance.folder / "first-login.txt"]
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_redis_wants_the_password_and_listens_on_loopback_only(instance):
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=instance.redis_port).ping()
    listening = [c for c in psutil.net_connections("tcp") if c.laddr.port == instance.redis_port]
    assert {c.laddr.ip for c in listening if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_a_second_start_on_the_same_data_folder_names_the_first(instance):
    second = up(instance.environment, "--port", str(instance.port))
    assert second.returncode == 1
    assert f"(process {instance.process.pid})" in second.stderr


def test_a_killed_web_process_comes_back(instance):
    first = pid_of(instance, "web")
    os.kill(first, signal.SIGKILL)
    wait_for("an answer", lambda: answers(instance), patience_s=90, poll_s=0.05)
    assert pid_of(instance, "web") not in {first, None}


def test_after_redis_is_killed_its_data_is_there_and_both_queues_execute_again(instance):
    client = redis.Redis.from_url(redis_url(instance))
    client.rpush("a-queue-that-nobody-reads", "a job")
    first = client.info("server")["process_id"]
    os.kill(first, signal.SIGKILL)
    for queue in ("gpu", "env"):
        assert asyncio.run(eventually_executes(redis_url(instance), queue))
    assert client.info("server")["process_id"] != first
    assert client.lrange("a-queue-that-nobody-reads", 0, -1) == [b"a job"]
    client.close()


def test_a_taken_port_names_its_owner_and_the_flag(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = up({**os.environ, "DESKHAND_DATA_DIR": str(tmp_path)}, "--port", str(port))
    assert answer.returncode == 1
    assert f"Port {port} is taken by process {os.getpid()}" in answer.stderr
    assert "--port" in answer.stderr


def test_after_the_supervisor_is_killed_nothing_is_left_and_a_new_start_works(instance):
    """The last one of these: it stops the installation of all."""
    instance.kill()
    instance.start()
    assert httpx.get(f"{instance.url}/healthz", timeout=30).status_code == 200
    instance.stop()
    assert [mark for _, mark in marked() if mark.startswith(str(instance.folder))] == []


def redis_url(instance):
    password = (instance.folder / "secrets" / "redis_password").read_text()
    return f"redis://:{password}@127.0.0.1:{instance.redis_port}/0"


async def eventually_executes(url, queue):
    """Ask again while Redis is not back."""
    async with asyncio.timeout(120):
        while True:
            try:
                return await queue_executes(url, queue, 30)
            except (redis.ConnectionError, kombu.exceptions.OperationalError):
                await asyncio.sleep(0.1)


def answers(instance):
    try:
        return httpx.get(f"{instance.url}/healthz", timeout=30).status_code == 200
    except httpx.TransportError:
        return False


def up(env, *arguments):
    command = [sys.executable, str(REPOSITORY / "manage.py"), "up", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
