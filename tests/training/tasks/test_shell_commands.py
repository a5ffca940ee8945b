"""Which programs a command starts, as OSWorld's tasks write commands."""

import pytest

from training.tasks.supported_by.shell_commands import programs_of


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        (["google-chrome", "--remote-debugging-port=1337"], ["google-chrome"]),
        ("/usr/bin/thunderbird -compose x", ["thunderbird"]),
        ("cd /home/user && zip -qr a.zip a", ["zip"]),
        ("echo password | sudo -S apt install xsel && xsel -bc", ["sudo", "xsel"]),
        (
            ["bash", "-c", 'x=$(ps aux | grep y); if [ -z "$x" ]; then cat z; fi'],
            ["bash", "ps", "grep", "cat"],
        ),
        ("export A='b=c'\ngsettings get x y", ["gsettings"]),
        ("jq . a > temp && mv temp b", ["jq", "mv"]),
        (["code", "--list-extensions", "|", "grep", "lisp"], ["code"]),
        (["sudo chown -R user History"], ["sudo"]),
        ("./setup.sh", []),
        ("echo 'no end", []),
        (None, []),
        ([], []),
    ],
)
def test_the_programs_of_a_command(command, programs):
    assert programs_of(command) == programs
