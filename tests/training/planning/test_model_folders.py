"""Weights that a model field names: folders, and the hub's cache as a download leaves it."""

from pathlib import Path

import huggingface_hub.constants
import pytest
from transformers import AutoModelForImageTextToText

from testing.hub_cache import COMMIT, fill_hub_cache
from testing.paths import REPOSITORY
from training.planning.model_folders import (
    HubModel,
    NotInHubCache,
    cached_snapshot,
    find_folder,
    hub_model,
    pinned,
)

SHIPPED = REPOSITORY / "training" / "checkpoints_shipped"
NAME = "someone/first-desk"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def find(path: str, data: Path) -> Path | None:
    return find_folder(path, shipped=SHIPPED, data=data)


def test_a_branch_of_the_hub_is_its_commits_folder_and_loads(cache: Path, tmp_path: Path) -> None:
    snapshot = fill_hub_cache(cache, SHIPPED / "first-desk", repository=NAME)
    assert find(f"{NAME}@main", tmp_path) == find(f"{NAME}@{COMMIT}", tmp_path) == snapshot
    assert pinned(f"{NAME}@main") == pinned(f"{NAME}@{COMMIT}") == f"{NAME}@{COMMIT}"
    model = AutoModelForImageTextToText.from_pretrained(snapshot)
    assert model.num_parameters() > 900_000


def test_a_branch_that_moves_leaves_the_commit_where_it_was(cache: Path, tmp_path: Path) -> None:
    old = fill_hub_cache(cache, SHIPPED / "first-desk", repository=NAME)
    path = pinned(f"{NAME}@main")
    new = fill_hub_cache(cache, SHIPPED / "first-desk", repository=NAME, commit="f" * 40)
    assert find(path, tmp_path) == old
    assert find(f"{NAME}@main", tmp_path) == new


@pytest.mark.parametrize("revision", ["main", "v1.0", "a" * 40, "../../x"])
def test_what_the_cache_lacks_names_the_command_that_fills_it(cache: Path, revision: str) -> None:
    fill_hub_cache(cache, SHIPPED / "first-desk", repository=NAME, branch="other")
    with pytest.raises(NotInHubCache, match=rf"hf download {NAME} --revision {revision}$"):
        cached_snapshot(HubModel(NAME, revision))


def test_a_download_that_broke_off_is_not_taken_for_a_model(cache: Path, tmp_path: Path) -> None:
    fill_hub_cache(cache, SHIPPED / "first-desk", repository=NAME, without="model.safetensors")
    assert find(f"{NAME}@main", tmp_path) is None
    with pytest.raises(NotInHubCache, match="hf download"):
        cached_snapshot(HubModel(NAME, "main"))
    assert pinned(f"{NAME}@main") == f"{NAME}@main"


def test_a_folder_goes_before_a_name_of_the_hub(cache: Path, tmp_path: Path) -> None:
    fill_hub_cache(cache, SHIPPED / "first-desk", repository=NAME)
    folder = tmp_path / f"{NAME}@main"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert find(f"{NAME}@main", tmp_path) == folder


@pytest.mark.parametrize(
    "path",
    ["first-desk", "/data/a@b", "a/b", "a/b/c@main", "../a@main", "experiment:12@best", "", "@", "a/b@"],
)
def test_other_names_are_not_of_the_hub(path: str) -> None:
    assert hub_model(path) is None
    assert pinned(path) == path
