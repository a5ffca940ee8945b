"""Redis without a system package: the server that pip installed does the same."""

import subprocess
import time

import redis

from webapp.lib.supervisor.ports import free_port
from webapp.lib.supervisor.redis_server import find_redis, redis_command


def test_without_a_system_redis_the_one_from_pip_serves(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_redis().endswith("valkey-server")
    port = free_port()
    server = subprocess.Popen(redis_command(tmp_path / "redis", port, "secret"), stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port, password="secret")
    try:
        wait_for(client)
        client.rpush("jobs", "one")
        assert client.blpop("jobs", timeout=30) == (b"jobs", b"one")
        assert client.config_get("appendonly")["appendonly"] == "yes"
    finally:
        client.close()
        server.terminate()
        server.wait(60)


def test_its_configuration_with_the_password_is_for_its_owner_only(tmp_path):
    command = redis_command(tmp_path / "redis", 1, "secret")
    assert "secret" not in " ".join(command)
    assert (tmp_path / "redis" / "redis.conf").stat().st_mode & 0o777 == 0o600


def wait_for(client, timeout_s=30):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            return client.ping()
        except redis.ConnectionError:
            time.sleep(0.02)
    return client.ping()
