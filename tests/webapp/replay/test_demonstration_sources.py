"""Sets of demonstrations become lines of an import, by a mapping of one's own or a shipped one."""

import json
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from testing.demonstration_sets import ACTED, CODE_MAPPING, code_set
from webapp.replay.demonstration_sources.convert import convert
from webapp.replay.demonstration_sources.mapping import SHIPPED, Mapping, MappingError, read_mapping


def own_mapping(folder: Path) -> Mapping:
    file = folder / "mapping.yaml"
    file.write_text(yaml.safe_dump(CODE_MAPPING))
    return read_mapping(str(file))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_mapping_can_be_read(name):
    assert read_mapping(name).steps


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.remove('x')", "traj[0].value.code"),
        ("pyautogui.click(", "cannot be read"),
        ("", "no code"),
        ("import os", "holds no call"),
        ("pyautogui.click(1e999, 0.5)", "infinity"),
        (f"pyautogui.click({'-' * 900}1, 2)", "recursion"),
    ],
)
def test_bad_episodes_are_named_and_the_others_come(tmp_path, code, said):
    code_set(code_set(code_set(tmp_path, [code]), ACTED), ACTED, task_completed=False)
    with (tmp_path / "agentnet_ubuntu.jsonl").open("a") as file:
        file.write("{broken\n" + "[" * 5000)
    found = list(convert(tmp_path, own_mapping(tmp_path)))
    assert [episode.line is not None for episode in found] == [False, True, False, False, False]
    assert said in found[0].problem
    assert found[2].problem == ""
    assert [episode.problem[:8] for episode in found[3:]] == ["not JSON"] * 2
    assert found[3].where == "agentnet_ubuntu.jsonl:4"


def test_a_file_with_a_mark_and_other_line_ends_is_read(tmp_path):
    file = code_set(tmp_path, ACTED) / "agentnet_ubuntu.jsonl"
    line = file.read_bytes().strip()
    file.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n{oops\r" + line)
    found = list(convert(tmp_path, own_mapping(tmp_path)))
    assert [(one.where, bool(one.line)) for one in found] == [
        ("agentnet_ubuntu.jsonl:1", True),
        ("agentnet_ubuntu.jsonl:2", False),
        ("agentnet_ubuntu.jsonl:3", True),
    ]


def test_pictures_must_lie_in_their_folder_and_be_pictures(tmp_path):
    code_set(tmp_path, ["pyautogui.click(0.5, 0.5)"])
    lines = (tmp_path / "agentnet_ubuntu.jsonl").read_text()
    (tmp_path / "agentnet_ubuntu.jsonl").write_text(lines.replace("0.png", "../../secret.png"))
    assert "is outside of" in next(convert(tmp_path, own_mapping(tmp_path))).problem
    (tmp_path / "agentnet_ubuntu.jsonl").write_text(lines.replace("0.png", "\\u0000.png"))
    assert "the character NUL" in next(convert(tmp_path, own_mapping(tmp_path))).problem
    (tmp_path / "agentnet_ubuntu.jsonl").write_text(lines)
    (tmp_path / "images" / "0.png").write_text("no picture")
    assert "not an image" in next(convert(tmp_path, own_mapping(tmp_path))).problem


def test_a_mapping_of_ones_own_is_checked(tmp_path):
    own = tmp_path / "mapping.yaml"
    values = CODE_MAPPING
    for change, said in (
        ({"stepz": "x"}, "stepz"),
        ({"code": ""}, "either code"),
        ({"steps": None}, "steps"),
    ):
        own.write_text(yaml.safe_dump(values | change))
        with pytest.raises(MappingError, match=said):
            read_mapping(str(own))
    with pytest.raises(MappingError, match=", ".join(SHIPPED)):
        read_mapping("nothing")
    own.write_text(yaml.safe_dump(values))
    with pytest.raises(CommandError, match="no file is named"):
        call_command("convert_demonstrations", tmp_path, tmp_path / "out.jsonl", mapping=str(own))


def test_code_with_counts_holds_and_lists_of_keys_is_read(tmp_path):
    calls = [
        "pyautogui.press('down', presses=3)",
        "pyautogui.keyDown('shift')",
        "pyautogui.press(['a', 'b'])",
    ]
    found = list(convert(code_set(tmp_path, calls), own_mapping(tmp_path)))
    assert [one.problem for one in found] == [""]
    said = [message["content"] for message in found[0].line["messages"] if message["role"] == "assistant"]
    assert [json.loads(text.rsplit("\n", 1)[-1])["action"] for text in said[:4]] == [
        "key",
        "key_down",
        "key",
        "key",
    ]
