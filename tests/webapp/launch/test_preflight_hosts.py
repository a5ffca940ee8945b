"""Pre-flight about machines: GPUs, memory, budgets, secrets, images, SGLang; each names its knob."""

import socket
from pathlib import Path

import pytest

from testing.factories import make_team
from training.contracts.config import ExperimentConfig, parse_config
from training.planning.gpu_layouts import MODELS
from webapp.fleet.models import Host, Worker
from webapp.fleet.services.workers import beat_worker
from webapp.launch.preflight.check import Check
from webapp.launch.preflight.hosts import host_checks
from webapp.launch.preflight.memory import memory_checks
from webapp.launch.preflight.run_preflight import run_preflight
from webapp.launch.preflight.token_budgets import budget_checks

pytestmark = pytest.mark.django_db

H200 = {"name": "NVIDIA H200", "memory_bytes": 150_000_000_000}
SGLANG = {"name": "sglang", "placement": "own"}


def gpu_worker(gpus: list[dict] | None, host: str = "gpu-host") -> None:
    beat_worker(name=f"gpu@{host}", queue="gpu", host=host, pid=1, slots=1, version="1")
    Worker.objects.update(gpus=gpus)


def config(**sections: dict) -> ExperimentConfig:
    base = {
        "model": {"dtype": "bfloat16"},
        "sampling": {"max_context_tokens": 8192},
        "optimiser": {"packing": True, "microbatch_tokens": 16_384},
        "parallel": {"activation_checkpointing": True},
    }
    for name, values in sections.items():
        base[name] = base.get(name, {}) | values
    return parse_config(base)


def at(path: str, checks: list[Check]) -> Check:
    found = [check for check in checks if check.path == path and check.level != "good"]
    assert found, f"nothing about {path} in {checks}"
    return found[0]


# --- GPUs and their memory ---------------------------------------------------------------------------


def test_more_gpus_than_any_host_has_stop_the_launch_with_what_to_lower() -> None:
    gpu_worker([H200] * 2)
    checks = list(memory_checks(config(optimiser={"num_processes": 2}, engine=SGLANG), MODELS["2B"]))
    found = at("optimiser.num_processes", checks)
    assert (found.level, found.title) == ("bad", "3 GPUs wanted, 2 there")
    assert "engine.placement" in found.detail


def test_enough_gpus_with_enough_memory_are_good() -> None:
    gpu_worker([H200] * 2)
    checks = list(memory_checks(config(engine=SGLANG), MODELS["4B"]))
    assert {check.level for check in checks} == {"good"}
    assert "optimiser" in checks[-1].detail


def test_what_cannot_fit_stops_the_launch_and_what_hardly_fits_warns() -> None:
    gpu_worker([H200])
    colocated = {"name": "sglang", "placement": "colocated", "memory_fraction": 0.4}
    too_large = list(memory_checks(config(engine=colocated), MODELS["32B"]))
    assert at("optimiser.num_processes", too_large).level == "bad"
    # Both measures of memory: what it holds at rest fits, what a microbatch adds does not.
    tight = list(memory_checks(config(parallel={"activation_checkpointing": False}), MODELS["4B"]))
    found = at("optimiser.microbatch_tokens", tight)
    assert found.level == "warning"
    assert "parallel.activation_checkpointing" in found.detail


def test_the_largest_of_several_hosts_counts() -> None:
    gpu_worker([], host="small")
    beat_worker(name="gpu@large", queue="gpu", host="large", pid=1, slots=1, version="1")
    Worker.objects.filter(host="large").update(gpus=[H200] * 4)
    checks = list(memory_checks(config(engine=SGLANG), MODELS["2B"]))
    assert (checks[0].title, checks[0].detail) == ("2 of 4 GPUs", "On large.")


def test_without_any_gpu_worker_the_need_is_told_and_nothing_is_forbidden() -> None:
    (found,) = memory_checks(config(engine=SGLANG), MODELS["8B"])
    assert (found.level, found.title) == ("info", "Asks for 2 GPUs")
    assert "150 GB (H200, sold as 141 GB)" in found.detail


def test_sglang_on_a_host_without_gpus_is_refused() -> None:
    gpu_worker([])
    found = at("engine.name", list(memory_checks(config(engine=SGLANG), MODELS["2B"])))
    assert found.level == "bad"
    assert "transformers" in found.detail


def test_a_large_model_on_a_cpu_is_a_warning() -> None:
    gpu_worker([])
    assert at("model.path", list(memory_checks(config(), MODELS["2B"]))).level == "warning"


def test_a_published_model_that_is_not_there_yet_still_gets_its_estimate() -> None:
    gpu_worker([H200])
    found = run_preflight(config(model={"path": "Qwen3-VL-2B-Instruct"}), team=make_team())
    assert any(check.title.startswith("Memory per GPU") for check in found.checks)


# --- budgets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sections", "path", "level"),
    [
        ({"sampling": {"max_completion_tokens": 8192}}, "sampling.max_completion_tokens", "bad"),
        (
            {"model": {"min_pixels": 9_000_000, "max_pixels": 9_000_000}},
            "sampling.max_context_tokens",
            "bad",
        ),
        (
            {"sampling": {"max_image_tokens": 10}, "model": {"min_pixels": 65_536, "max_pixels": 65_536}},
            "sampling.max_image_tokens",
            "bad",
        ),
        (
            {"optimiser": {"microbatch_patches": 64}, "model": {"min_pixels": 65_536, "max_pixels": 65_536}},
            "optimiser.microbatch_patches",
            "bad",
        ),
        ({"optimiser": {"microbatch_tokens": 4096}}, "optimiser.microbatch_tokens", "warning"),
        (
            {"prompt": {"observation": ["marks", "terminal"], "accessibility_chars": 60_000}},
            "prompt.accessibility_chars",
            "warning",
        ),
        (
            {"prompt": {"observation": ["terminal"]}, "desktops": {"max_turns": 15}},
            "sampling.max_context_tokens",
            "info",
        ),
        (
            {"model": {"max_pixels": 2_088_960}, "desktops": {"max_turns": 15}},
            "sampling.max_context_tokens",
            "info",
        ),
    ],
)
def test_a_budget_without_room_is_named(sections: dict, path: str, level: str) -> None:
    assert at(path, list(budget_checks(config(**sections)))).level == level


def test_budgets_with_room_say_nothing() -> None:
    assert not list(budget_checks(config()))
    blind = config(prompt={"observation": []}, model={"min_pixels": 9_000_000, "max_pixels": 9_000_000})
    assert not list(budget_checks(blind))


# --- secrets, images, programs -----------------------------------------------------------------------


def gateway(secret: str) -> ExperimentConfig:
    knobs = {"endpoint": "https://cluster.example", "token_secret": secret}
    return parse_config({"desktops": {"provider": "gateway", "gateway": knobs}})


def test_a_named_secret_that_does_not_exist_stops_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = at("desktops.gateway.token_secret", list(host_checks(gateway("vendor-token"))))
    assert found.level == "bad"
    assert "DESKHAND_SECRET_VENDOR_TOKEN" in found.detail
    monkeypatch.setenv("DESKHAND_SECRET_VENDOR_TOKEN", "s3cret")
    assert not list(host_checks(gateway("vendor-token")))


def test_it_only_warns_when_the_env_workers_run_elsewhere() -> None:
    beat_worker(name="env@far", queue="env", host="far", pid=1, slots=4, version="1")
    assert at("desktops.gateway.token_secret", list(host_checks(gateway("vendor-token")))).level == "warning"
    beat_worker(name="env@here", queue="env", host=socket.gethostname(), pid=1, slots=4, version="1")
    assert at("desktops.gateway.token_secret", list(host_checks(gateway("vendor-token")))).level == "bad"


@pytest.mark.parametrize(
    ("provider", "remedy"), [("qemu", "make guest-image"), ("windows", "docs/windows.md")]
)
def test_an_image_that_is_not_there_is_named_with_where_it_comes_from(
    provider: str, remedy: str, settings, tmp_path: Path
) -> None:
    wanted = parse_config({"desktops": {"provider": provider, provider: {"image": "my-image"}}})
    found = at(f"desktops.{provider}.image", list(host_checks(wanted)))
    assert found.level == "bad"
    assert remedy in found.detail

    settings.IMAGES_DIR = tmp_path
    (tmp_path / "my-image").mkdir()
    (tmp_path / "my-image" / "image.json").write_text("{}")
    assert not [check for check in host_checks(wanted) if "image" in check.path]


def test_machines_larger_than_their_host_are_refused_and_many_of_them_warned_about() -> None:
    Host.objects.create(name="h", memory_mb=4000)
    large = parse_config({"desktops": {"provider": "qemu", "qemu": {"memory_mb": 8192}}})
    assert at("desktops.qemu.memory_mb", list(host_checks(large))).level == "bad"
    many = parse_config({"desktops": {"provider": "qemu", "num_desktops": 64}})
    found = at("desktops.num_desktops", list(host_checks(many)))
    assert found.level == "warning"
    assert "the hosts have 4000" in found.detail


def host_with_x11(name: str, *, usable: bool) -> None:
    beat_worker(name=f"env@{name}", queue="env", host=name, pid=1, slots=4, version="1")
    reasons, remedies = ([], []) if usable else (["bwrap is not installed"], ["apt-get install bubblewrap"])
    said = {"provider": "x11", "usable": usable, "mode": "", "reasons": reasons, "remedies": remedies}
    Host.objects.create(name=name, providers=[said])


def test_desktops_that_cannot_start_anywhere_stop_the_launch_before_an_engine_does() -> None:
    x11 = parse_config({"desktops": {"provider": "x11"}})
    host_with_x11("one", usable=False)
    found = at("desktops.provider", list(host_checks(x11)))
    assert (found.level, found.title) == ("bad", "No x11 desktop starts on 1 of 1 hosts")
    assert "one: bwrap is not installed. To do there: apt-get install bubblewrap." in found.detail
    host_with_x11("two", usable=True)
    assert at("desktops.provider", list(host_checks(x11))).level == "warning"
    Worker.objects.filter(host="one").update(status="offline")
    assert not [check for check in host_checks(x11) if check.path == "desktops.provider"]


def test_a_missing_sglang_environment_is_named(settings, tmp_path: Path) -> None:
    settings.SGLANG_PYTHON = str(tmp_path / "python")
    found = at("engine.name", list(host_checks(config(engine=SGLANG))))
    assert "make sglang-env" in found.detail
    (tmp_path / "python").write_text("#!/bin/sh\n")
    (tmp_path / "python").chmod(0o755)
    assert not list(host_checks(config(engine=SGLANG)))
