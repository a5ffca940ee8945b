"""Pre-flight: what is checked before an experiment is queued, and what it says."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from testing.factories import (
    make_experiment,
    make_replay_entry,
    make_task,
    make_task_set,
    make_team,
    make_trajectory,
)
from testing.fleet_rows import make_desktop
from testing.model_folders import CHAT, QWEN, write_model_folder
from training.contracts.config import ExperimentConfig, parse_config
from training.contracts.types import Task
from webapp.accounts.models import Team
from webapp.experiments.models import ExperimentStatus
from webapp.experiments.services.task_sets import import_task_set
from webapp.fleet.services.workers import beat_worker, record_gpus
from webapp.launch.preflight.check import Check
from webapp.launch.preflight.run_preflight import run_preflight

pytestmark = pytest.mark.django_db

OSWORLD_UBUNTU = {"provider": "osworld", "osworld": {"machines": "docker"}}


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def model(tmp_path: Path) -> str:
    write_model_folder(tmp_path, "qwen3_vl")
    return str(tmp_path)


def checks(config: ExperimentConfig, team: Team) -> dict[str, Check]:
    return {check.title: check for check in run_preflight(config, team=team).checks}


def level_of(path: str, config: ExperimentConfig, team: Team) -> str:
    found = [check.level for check in run_preflight(config, team=team).checks if check.path == path]
    assert found, f"no check about {path}"
    return found[0]


def test_a_config_whose_needs_are_met_may_be_launched(team: Team, model: str):
    task_set = make_task_set("first-desk")
    for split in ("train", "heldout"):
        make_task(task_set=task_set, split=split)
    beat_worker(name="env", queue="env", host="here", pid=1, slots=8, version="")
    beat_worker(name="gpu", queue="gpu", host="here", pid=2, slots=1, version="")
    found = run_preflight(parse_config({"model": {"path": model}, "evaluation": {"num_tasks": 1}}), team=team)
    assert {check.level for check in found.checks} == {"good"}
    assert found.may_launch
    assert (found.queue_position, found.num_active) == (1, 0)


def test_a_model_that_may_lie_on_another_machine_is_a_warning_that_says_who_was_asked(team: Team):
    beat_worker(name="gpu@far", queue="gpu", host="far", pid=2, slots=1, version="")
    found = checks(parse_config({"model": {"path": "nowhere"}}), team)["Model not found"]
    assert found.level == "warning"
    assert "gpu workers also run on far, which were not asked" in found.detail


def test_a_missing_model_or_task_set_stops_the_launch(team: Team):
    config = parse_config({"model": {"path": "nowhere"}, "tasks": {"task_set": "unknown"}})
    assert level_of("model.path", config, team) == "bad"
    assert level_of("tasks.task_set", config, team) == "bad"
    assert not run_preflight(config, team=team).may_launch


def test_more_hosts_than_could_share_it_stop_the_launch(team: Team, tmp_path: Path):
    config = parse_config(
        {
            "model": {"path": "tiny-random"},
            "optimiser": {"num_processes": 2, "num_hosts": 2},
            "checkpoints": {"directory": str(tmp_path)},
        }
    )
    for host, address in (("a", "a.example"), ("b", "")):
        beat_worker(name=f"gpu@{host}", queue="gpu", host=host, pid=1, slots=1, version="")
        record_gpus(name=f"gpu@{host}", gpus=[], address=address)
    found = checks(config, team)["Not 2 gpu hosts that can share it"]
    assert (found.level, found.path) == ("bad", "optimiser.num_hosts")
    assert "1 of the gpu hosts online could take a part. Each needs DESKHAND_TRAIN_NETWORK" in found.detail
    record_gpus(name="gpu@b", gpus=[], address="b.example")
    assert checks(config, team)["2 of 2 gpu hosts"].level == "good"


def test_the_tiny_random_model_needs_no_folder(team: Team):
    found = checks(parse_config({"model": {"path": "tiny-random"}}), team)
    assert found["A random tiny model is made at the start"].level == "good"


def test_families_that_no_task_has_are_answered_with_those_that_exist(team: Team):
    make_task(task_set=make_task_set("first-desk"), family="menu")
    found = checks(parse_config({"tasks": {"families": ["typo"]}}), team)["No task to practise"]
    assert found.level == "bad"
    assert "menu" in found.detail


def windows_task(name: str, split: str) -> Task:
    opened = {"type": "open", "parameters": {"path": "C:\\Users\\User\\a.docx"}}
    return Task(
        task_id=name,
        instruction="Go.",
        split=split,
        config=(opened,),
        evaluator={"func": "infeasible"},
    )


@pytest.mark.parametrize("desktops", [{}, {"provider": "osworld"}, OSWORLD_UBUNTU])
def test_windows_tasks_on_linux_desktops_are_refused_with_the_remedy(desktops: dict, team: Team):
    import_task_set(name="docs", origin="x", tasks=[windows_task("a", "train"), windows_task("b", "heldout")])
    config = parse_config({"tasks": {"task_set": "docs"}, "desktops": desktops})
    found = checks(config, team)["No task runs on these desktops"]
    assert (found.level, found.path) == ("bad", "desktops.provider")
    assert "2: it is made for Windows, and these desktops run Linux" in found.detail
    assert "2 of them can run on Windows machines (desktops.provider: windows)" in found.detail
    fits = parse_config({"tasks": {"task_set": "docs"}, "desktops": {"provider": "windows"}})
    assert checks(fits, team)["1 train and 1 held-out tasks"].level == "good"


def test_some_tasks_that_the_desktops_cannot_run_are_a_warning(team: Team):
    fitting = Task(task_id="c", instruction="Stop.", evaluator={"func": "infeasible"})
    import_task_set(name="docs", origin="x", tasks=[windows_task("a", "train"), fitting])
    found = checks(parse_config({"tasks": {"task_set": "docs"}}), team)
    assert found["1 of the chosen tasks cannot run on these desktops"].level == "warning"


def test_tasks_that_expect_a_proxy_are_counted_where_there_is_none(team: Team):
    live, plain = (
        Task(task_id=name, instruction=name, evaluator={"func": "infeasible"}, published={"proxy": value})
        for name, value in (("a", True), ("b", False))
    )
    import_task_set(name="live", origin="x", tasks=[live, plain])
    config = {"tasks": {"task_set": "live"}, "desktops": OSWORLD_UBUNTU}
    found = checks(parse_config(config), team)["1 tasks expect a proxy"]
    assert (found.level, found.path) == ("warning", "desktops.osworld.enable_proxy")
    own = {**OSWORLD_UBUNTU["osworld"], "enable_proxy": True, "pass_variables": ["PROXY_CONFIG_FILE"]}
    with_proxy = {"provider": "osworld", "osworld": own}
    assert "1 tasks expect a proxy" not in checks(parse_config({**config, "desktops": with_proxy}), team)


@pytest.mark.parametrize(
    ("side", "prompt", "warns"),
    [
        (640, {}, False),
        (1312, {}, True),
        (1312, {"style": "computer-use"}, False),
        (1312, {"coordinate_space": "screen"}, False),
    ],
)
def test_a_grid_of_ten_permille_is_a_warning_on_a_large_screen(
    side: int, prompt: dict, warns: bool, team: Team
):
    row = make_task(task_set=make_task_set("first-desk"))
    row.spec["screen"] = [side, 480]
    row.save()
    found = checks(parse_config({"prompt": prompt}), team)
    title = "Coordinates are coarse on this screen"
    assert (title in found) is warns
    if warns:
        assert (found[title].level, found[title].path) == ("warning", "prompt.style")
        assert "grid of 13 pixels" in found[title].detail


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"algorithm": {"group_size": 2}}, "algorithm.group_size"),
        ({"optimiser": {"microbatch_size": 5}}, "optimiser.microbatch_size"),
        ({}, "desktops.num_desktops"),
        ({"replay": {"enabled": True}}, "replay.enabled"),
        ({"algorithm": {"old_logprobs": "recomputed"}}, "algorithm.updates_per_batch"),
        (
            {"algorithm": {"name": "gspo", "clip_high": 4e-4}, "model": {"dtype": "bfloat16"}},
            "algorithm.old_logprobs",
        ),
    ],
)
def test_what_is_unwise_is_a_warning_at_its_knob(values: dict, path: str, team: Team):
    assert level_of(path, parse_config(values), team) == "warning"


def test_fewer_slots_than_desktops_are_named(team: Team):
    beat_worker(name="env", queue="env", host="here", pid=1, slots=3, version="")
    assert "3 of 8 desktops online" in checks(ExperimentConfig(), team)


def test_the_estimate_counts_the_desktops_that_are_online(team: Team):
    config = parse_config({"desktops": {"num_desktops": 8}, "algorithm": {"num_steps": 100}})
    everywhere = run_preflight(config, team=team)
    beat_worker(name="env", queue="env", host="here", pid=1, slots=1, version="")
    here = run_preflight(config, team=team)
    assert here.seconds > 4 * everywhere.seconds
    assert "on 1 of 8 desktops" in here.seconds_basis


def test_an_estimate_never_contradicts_the_warning_about_desktops(team: Team):
    """64 wanted and 8 online: as long as with 8 wanted, also by what earlier ones took."""

    def wanting(number: int) -> ExperimentConfig:
        return parse_config({"desktops": {"num_desktops": number}, "algorithm": {"num_steps": 100}})

    now = timezone.now()
    beat_worker(name="env", queue="env", host="here", pid=1, slots=8, version="")
    for preset in ("", "first-desk"):
        found = run_preflight(wanting(64), team=team, preset=preset)
        assert found.seconds == run_preflight(wanting(8), team=team, preset=preset).seconds
        assert "8 of 64 desktops online" in {check.title for check in found.checks}
        assert found.seconds_basis.endswith(", on 8 of 64 desktops")
        make_experiment(
            team=team,
            config=wanting(8).model_dump(mode="json"),
            status=ExperimentStatus.FINISHED,
            preset="first-desk",
            started_at=now - timedelta(minutes=40),
            ended_at=now,
        )
    assert found.seconds == pytest.approx(40 * 60)


def test_an_estimate_counts_the_desktops_that_an_earlier_one_had(team: Team):
    """It took 10 minutes on 64; 8 are online now."""
    config = parse_config({"desktops": {"num_desktops": 64}, "algorithm": {"num_steps": 100}})
    now = timezone.now()
    earlier = make_experiment(
        team=team,
        config=config.model_dump(mode="json"),
        status=ExperimentStatus.FINISHED,
        preset="first-desk",
        started_at=now - timedelta(minutes=10),
        ended_at=now,
    )
    beat_worker(name="env", queue="env", host="here", pid=1, slots=8, version="")
    for number in range(64):
        make_trajectory(experiment=earlier, turns=0, desktop=make_desktop(f"d{number}"))
    found = run_preflight(config, team=team, preset="first-desk")
    assert found.seconds > 3 * 600
    assert "1 finished experiment of this preset, on 8 of 64 desktops" in found.seconds_basis


def test_without_desktops_the_estimate_says_what_it_supposes(team: Team):
    found = run_preflight(ExperimentConfig(), team=team)
    assert "No desktops online" in {check.title for check in found.checks}
    assert found.seconds_basis.endswith(", once 8 desktops are online")


def test_a_reference_that_is_not_there_stops_the_launch(team: Team):
    config = parse_config({"algorithm": {"kl_coefficient": 0.1, "reference_path": "nowhere"}})
    assert level_of("algorithm.reference_path", config, team) == "bad"


def test_a_reference_that_cannot_score_the_tokens_stops_the_launch(team: Team, model: str, tmp_path: Path):
    reference = write_model_folder(tmp_path / "reference", "qwen3")
    values = {"algorithm": {"kl_coefficient": 0.1, "reference_path": str(reference)}}
    config = parse_config({"model": {"path": model}} | values)
    assert checks(config, team)["KL reference found"].level == "good"
    write_model_folder(reference, "qwen3", vocab_size=640)
    found = checks(config, team)["KL reference cannot be used"]
    assert (found.level, found.path) == ("bad", "algorithm.reference_path")
    assert "reference has 640 tokens" in found.detail
    (reference / "config.json").write_text('{"model_type": "gemma3"}')
    assert "gemma3 is not supported" in checks(config, team)["KL reference cannot be used"].detail


def test_a_model_folder_that_is_not_whole_stops_the_launch_with_what_lacks(team: Team, model: str):
    """What else can lack: `tests/training/planning/test_model_weights.py`."""
    config = parse_config({"model": {"path": model}})
    weights, settings = Path(model) / "model.safetensors", Path(model) / "preprocessor_config.json"
    settings.write_text('{"patch_size": 14}')
    assert checks(config, team)["Image settings do not fit the model"].path == "model.path"
    weights.write_bytes(weights.read_bytes()[:100])
    found = checks(config, team)["Model cannot be read"]
    assert (found.level, found.path) == ("bad", "model.path")
    assert f"{weights} is not a safetensors file" in found.detail
    weights.unlink()
    assert "no model.safetensors" in checks(config, team)["Weights do not fit the model"].detail


@pytest.mark.parametrize(
    ("targets", "level", "words"),
    [
        (["q_proj", "down_proj"], "", ""),
        (["q_proj", "v_porj"], "warning", "is named v_porj, so that name gets no adapter"),
        (["lm_head", "qkv"], "bad", "is named lm_head, qkv: choose names of its layers"),
    ],
)
def test_targets_of_adapters_that_no_layer_has_are_named(
    targets: list[str], level: str, words: str, team: Team, model: str
):
    config = parse_config({"model": {"path": model}, "lora": {"rank": 4, "targets": targets}})
    found = [one for one in run_preflight(config, team=team).checks if one.path == "lora.targets"]
    assert [one.level for one in found] == ([level] if level else [])
    assert all(words in one.detail for one in found)


def test_an_unwritable_checkpoint_folder_stops_the_launch(team: Team, tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("in the way")
    config = parse_config({"checkpoints": {"directory": str(file / "below")}})
    assert level_of("checkpoints.directory", config, team) == "bad"


def test_replay_counts_the_accepted_entries_of_this_task_set_and_team(team: Team):
    entry = make_replay_entry(team=team, verdict="accepted")
    make_replay_entry(team=team, verdict="inbox")
    make_replay_entry(verdict="gold")
    task_set = entry.trajectory.task.task_set.name
    config = parse_config({"replay": {"enabled": True}, "tasks": {"task_set": task_set}})
    assert "1 accepted replay entry" in checks(config, team)


def test_the_place_in_the_queue_counts_those_of_equal_or_higher_priority(team: Team):
    for priority in (0, 5):
        make_experiment(status=ExperimentStatus.QUEUED, priority=priority)
    make_experiment(status=ExperimentStatus.RUNNING)
    config = ExperimentConfig()
    assert run_preflight(config, team=team, priority=0).queue_position == 3
    assert run_preflight(config, team=team, priority=5).queue_position == 2
    assert run_preflight(config, team=team, priority=6).queue_position == 1
    assert run_preflight(config, team=team).num_active == 1


def test_the_duration_is_that_of_finished_experiments_of_the_preset_else_a_formula(team: Team):
    config, now = ExperimentConfig(), timezone.now()
    assert "formula" in run_preflight(config, team=team, preset="first-desk").seconds_basis
    for minutes in (4, 6, 20):
        make_experiment(
            team=team,
            status=ExperimentStatus.FINISHED,
            preset="first-desk",
            started_at=now - timedelta(minutes=minutes),
            ended_at=now,
        )
    found = run_preflight(config, team=team, preset="first-desk")
    assert found.seconds == pytest.approx(360)
    assert "3 finished experiments" in found.seconds_basis


def test_the_duration_follows_the_number_of_steps_when_finished_experiments_had_others(team: Team):
    def of(steps: int) -> ExperimentConfig:
        return parse_config({"algorithm": {"num_steps": steps}, "evaluation": {"num_tasks": 0}})

    now = timezone.now()
    for steps in (20, 10):
        make_experiment(
            team=team,
            config=of(steps).model_dump(mode="json"),
            status=ExperimentStatus.FINISHED,
            preset="first-desk",
            started_at=now - timedelta(minutes=steps),
            ended_at=now,
        )
    assert run_preflight(of(40), team=team, preset="first-desk").seconds == pytest.approx(40 * 60, rel=0.1)


def test_what_osworld_misses_on_this_machine_is_a_warning_at_its_knob(team: Team, settings):
    settings.OSWORLD_PYTHONS, settings.OSWORLD_DIRS = ["/nowhere/python"], [Path("/nowhere")]
    knobs = {"python": "/nowhere/python", "machines": "docker", "checkout": "/nowhere"}
    config = parse_config({"desktops": {"provider": "osworld", "osworld": knobs}})
    for knob in knobs:
        assert level_of(f"desktops.osworld.{knob}", config, team) == "warning"
    assert not [
        path for path in run_preflight(ExperimentConfig(), team=team).checks if "osworld" in path.path
    ]


def test_a_model_of_no_known_family_is_refused_with_those_that_are(team: Team, tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "gemma3"}')
    config = parse_config({"model": {"path": str(tmp_path)}})
    found = checks(config, team)["Model is not supported"]
    assert (found.level, found.path) == ("bad", "model.path")
    assert "gemma3" in found.detail
    assert "qwen3_vl" in found.detail


def test_a_tokenizer_without_a_token_of_the_prompts_is_refused_by_its_name(team: Team, tmp_path: Path):
    tokens = QWEN[:-1]
    config = parse_config({"model": {"path": str(write_model_folder(tmp_path, "qwen3_vl", tokens))}})
    found = checks(config, team)["Tokenizer does not fit the model"]
    assert (found.level, found.path) == ("bad", "model.path")
    assert "no token <|video_pad|>," in found.detail
    write_model_folder(tmp_path, "qwen3_vl", QWEN)
    assert "Tokenizer does not fit the model" not in checks(config, team)


def test_a_text_model_is_refused_screenshots_and_may_read_the_tree(team: Team, tmp_path: Path):
    path = str(write_model_folder(tmp_path, "qwen3", CHAT))
    found = checks(parse_config({"model": {"path": path}}), team)["The model sees no screenshots"]
    assert (found.level, found.path) == ("bad", "prompt.observation")
    reads = {"observation": ["accessibility"]}
    read = checks(parse_config({"model": {"path": path}, "prompt": reads, "sft": {"enabled": True}}), team)
    assert "The model sees no screenshots" not in read
    assert any(title.startswith("Model of") for title in read)


def test_what_qwen3_5_lacks_here_is_said(team: Team, tmp_path: Path):
    """Kernels make it quick on a GPU; without its vision tower SGLang has no class for it."""
    path = str(write_model_folder(tmp_path, "qwen3_5_text", CHAT))
    values = {"model": {"path": path, "dtype": "bfloat16"}, "prompt": {"observation": ["accessibility"]}}
    found = checks(parse_config(values), team)
    warning = found["fla-core is not installed"]
    assert (warning.level, warning.path) == ("warning", "model.path")
    assert "fla-core is not installed" not in checks(
        parse_config(values | {"model": {"path": path, "dtype": "float32"}}), team
    )
    served = {"engine": {"name": "sglang"}}
    assert checks(parse_config(values | served), team)["SGLang does not serve this model"].level == "bad"
    sees = {"model": {"path": str(write_model_folder(tmp_path, "qwen3_5", QWEN))}} | served
    refused = checks(parse_config(sees | {"lora": {"rank": 8}}), team)["SGLang does not serve these adapters"]
    assert (refused.level, refused.path) == ("bad", "lora.rank")
    assert not [one for one in checks(parse_config(sees), team) if one.startswith("SGLang does not serve")]


def test_a_qwen3_5_whose_blocks_sglang_cannot_count_is_refused_with_the_number(team: Team, tmp_path: Path):
    kinds = ["linear_attention", "linear_attention", "full_attention"] * 2
    path = write_model_folder(tmp_path, "qwen3_5", num_hidden_layers=6, layer_types=kinds) / "config.json"
    config = parse_config({"model": {"path": str(path.parent)}, "engine": {"name": "sglang"}})
    found = checks(config, team)["SGLang cannot read this config.json"]
    assert (found.level, found.path) == ("bad", "model.path")
    assert '"full_attention_interval": 3 ' in found.detail
    described = json.loads(path.read_text())
    described["text_config"]["full_attention_interval"] = 3
    path.write_text(json.dumps(described))
    assert "SGLang cannot read this config.json" not in checks(config, team)
