"""Trees and terminals of turns as content-addressed files beside the screenshots.

    frames/ab/SHA.txt.gz      SHA is the sha256 of the text itself

A team's row of a text is a `Frame` without a size; so texts are delivered, measured, pruned and copied with
the screenshots.
"""

from training.untrusted.packed_texts import unpacked
from webapp.accounts.models import Team
from webapp.lib.statements.single_rows import insert_row
from webapp.trajectories.frame_files import frame_files, read_frame
from webapp.trajectories.frame_files.contract import FileNames, FrameFile
from webapp.trajectories.frame_files.names import frame_path
from webapp.trajectories.models import Frame

VARIANT = "txt.gz"


def write_text(body: bytes, sha256: str) -> None:
    """The file first. Raises StorageAway."""
    file = FrameFile(frame_path(sha256, VARIANT), body, "application/gzip")
    frame_files().keep(text_names(sha256), lambda: [file])


def record_text(team: Team | int, sha256: str, num_bytes: int) -> None:
    """Then its row: the team has the text, whose file is there."""
    team_id = team if isinstance(team, int) else team.pk
    values = {"team": team_id, "sha256": sha256, "width": 0, "height": 0, "num_bytes": num_bytes}
    insert_row(Frame, **values, ignore_conflicts=True)


def store_text(team: Team | int, body: bytes, sha256: str) -> None:
    """Both, for a file that came from another machine. Raises NotAText."""
    unpacked(body, sha256)
    write_text(body, sha256)
    record_text(team, sha256, len(body))


def read_text(sha256: str) -> str:
    """Raises FileNotFoundError, StorageAway, NotAText."""
    return unpacked(read_frame(sha256, VARIANT), sha256)


def text_names(sha256: str) -> FileNames:
    """Storage names of a text's files."""
    return (frame_path(sha256, VARIANT),)
