"""Files that OSWorld's tasks fetch: filled from folders and archives, checked by content."""

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.fill_downloads import files_of_checkout, fill
from workers.environments.osworld.child.download_cache import DamagedFile, Downloads, KeptFiles, url_key

HUB = "https://hub.example/datasets/cache/resolve/main"
DRIVE = "https://drive.example/uc?id=7"
OTHER = "https://other.example/x/gold2.xlsx"


def download(url: str, path: str) -> dict:
    return {"type": "download", "parameters": {"files": [{"url": url, "path": path}]}}


TASK = {
    "id": "calc.t1",
    "config": [
        {"type": "launch", "parameters": {"command": "x"}},
        download(f"{HUB}/calc/t1/Book%201.xlsx", "/home/user/Book 1.xlsx"),
    ],
    "evaluator": {
        "postconfig": [download(DRIVE, "/tmp/late.py")],
        "expected": {
            "type": "cloud_file",
            "multi": True,
            "path": [f"{HUB}/calc/t1/gold.xlsx", OTHER],
            "dest": ["gold.xlsx", "gold2.xlsx"],
        },
    },
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    file = tmp_path / "checkout" / "evaluation_examples" / "examples" / "calc" / "t1.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(TASK))
    return tmp_path / "checkout"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the data set, with one file more that its index names, and one that DesktopEnv had cached."""
    folder = tmp_path / "source"
    cached = f"old/t1/{url_key('https://drive.example/uc?id=7')}_late.py"
    files = {
        "calc/t1/Book 1.xlsx": "book",
        "calc/t1/gold.xlsx": "same",
        "elsewhere.xlsx": "same",
        cached: "late",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "urls.json").write_text(json.dumps({OTHER: "elsewhere.xlsx"}))
    return folder


def packed(source: Path, kind: str) -> Path:
    target = source.with_name(f"source.{kind}")
    files = [file for file in source.rglob("*") if file.is_file()]
    if kind == "zip":
        with zipfile.ZipFile(target, "w") as archive:
            for file in files:
                archive.write(file, file.relative_to(source))
    else:
        with tarfile.open(target, "w:gz") as tar:
            for file in files:
                tar.add(file, str(file.relative_to(source)))
    return target


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
def test_a_source_fills_every_address_of_a_task(checkout: Path, source: Path, tmp_path: Path, kind: str):
    kept = tmp_path / "kept"
    wanted = files_of_checkout(checkout)
    assert fill(KeptFiles(kept), wanted, source if kind == "folder" else packed(source, kind)) == 4
    assert len(list((kept / "content").iterdir())) == 3, "the same content lies there once"
    cache = tmp_path / "cache"
    Downloads(cache, kept).lay_out(TASK)
    texts = {file.name.rpartition("_")[2]: file.read_text() for file in (cache / "calc.t1").iterdir()}
    assert texts == {"Book 1.xlsx": "book", "late.py": "late", "gold.xlsx": "same", "gold2.xlsx": "same"}


def test_what_an_episode_downloaded_is_kept_and_its_results_are_not(tmp_path: Path):
    downloads = Downloads(tmp_path / "cache", tmp_path / "kept")
    downloads.lay_out(TASK)
    folder = tmp_path / "cache" / "calc.t1"
    folder.mkdir(parents=True)
    (folder / "gold.xlsx").write_text("fetched")
    (folder / "answer.xlsx").write_text("of the desktop")
    downloads.keep(TASK)
    downloads.lay_out(TASK)
    assert [file.name for file in folder.iterdir()] == ["gold.xlsx"]


def test_a_damaged_file_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("good")
    kept = KeptFiles(tmp_path / "kept")
    sha256 = kept.put("https://x.example/a", tmp_path / "file")
    (tmp_path / "kept" / "content" / sha256).write_text("bad")
    with pytest.raises(DamagedFile, match=f"{sha256} is damaged.*x.example/a"):
        kept.copy("https://x.example/a", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
