"""A run on a real server of trackio."""

import os
import subprocess
import sys

import httpx
import pytest
from django.core.management import CommandError, call_command

from testing.tracked_experiment import caption_of, strip_of_the_evaluation
from testing.watch_installation import wait_for
from webapp.lib.supervisor.ports import free_port

pytestmark = [pytest.mark.db, pytest.mark.django_db]


TRACKIO = "trackio==0.43.0"


def test_an_address_that_cannot_be_used_is_named(experiment):
    with pytest.raises(CommandError, match="trackio: http://127.0.0.1:9: .*refused"):
        call_command("track", str(experiment.pk), "--to", "trackio=http://127.0.0.1:9/?write_token=x")


@pytest.mark.slow
def test_it_reads_back_what_the_experiment_measured(experiment, tmp_path):
    """A real server, in an environment of its own that uv makes: its pillow is older than ours."""
    place, token = tmp_path / "trackio", "written"
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    variables = {"TRACKIO_DIR": str(place), "TRACKIO_WRITE_TOKEN": token, "GRADIO_SERVER_PORT": str(port)}
    words = [sys.executable, "-m", "uv", "tool", "run", "--from", TRACKIO, "trackio"]
    made = subprocess.run([*words, "--help"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no {TRACKIO} from the package index: {made.stderr[-200:]}")
    starts = "import trackio; trackio.show(open_browser=False, share=False)"
    program = [*words[:-1], "python", "-c", starts]
    with subprocess.Popen(program, cwd=tmp_path, env={**os.environ, **variables}) as server:
        try:
            wait_for("trackio's server", lambda: _is_there(f"{address}/version"), patience_s=120)
            with pytest.raises(CommandError, match="write_token is required"):
                call_command("track", str(experiment.pk), "--to", f"trackio={address}")
            for _ in range(2):
                call_command("track", str(experiment.pk), "--to", f"trackio={address}/?write_token={token}")
            asked = {"project": "deskhand", "run": f"#{experiment.pk} {experiment.name}"}
            rows = httpx.post(f"{address}/api/get_logs", json=asked).json()["data"]
            success = [(row["step"], row["rollout/success"]) for row in rows if "rollout/success" in row]
            assert success == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
            [picture] = [row["samples/greedy/1"] for row in rows if "samples/greedy/1" in row]
            assert (picture["_type"], picture["caption"]) == ("trackio.image", caption_of(experiment))
            stored = place / "media" / picture["file_path"]
            assert stored.read_bytes() == strip_of_the_evaluation(experiment)
            [config] = (
                httpx.post(f"{address}/api/get_run_configs", json={"project": "deskhand"})
                .json()["data"]
                .values()
            )
            assert config["deskhand.status"] == "finished"
            assert config["algorithm.group_size"]
        finally:
            server.terminate()


def _is_there(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.TransportError:
        return False
