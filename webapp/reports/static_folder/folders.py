"""A trajectory or a group as a folder of files that opens from disk or any web host: no server,
no script but the theme's, nothing fetched from elsewhere.

    NAME/index.html    NAME/screens/SHA.jpg    NAME/style/...    of a group also NAME/trajectory-12.html
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.http import StreamingHttpResponse
from django.template.loader import render_to_string

from webapp.lib.media.file_streams import stream, zip_pieces
from webapp.trajectories.action_words import actions_caption, actions_of, key_caps
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.queries.group_lanes import group_lane
from webapp.trajectories.queries.trajectories import turns_of
from webapp.trajectories.side_by_side.group_turns import group_turns
from webapp.trajectories.turn_display import terms_total, turn_state
from webapp.trajectories.viewer_parts import reward_context

STYLE = (
    "css/base.css",
    "css/deskhand.css",
    "css/experiments.css",
    "css/viewer.css",
    "css/static_folder.css",
    "js/lib/theme.js",
)
SCREENS = "screens"
Files = Iterator[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True)
class StaticFolder:
    """What is sent: the pages are rendered, pictures are read while it is."""

    name: str
    pages: dict[str, str]
    files: Files

    def response(self) -> StreamingHttpResponse:
        """The folder as a .zip."""
        made = {f"{self.name}/{name}": text for name, text in self.pages.items()}
        inside = ((f"{self.name}/{name}", content) for name, content in self.files)
        pieces = zip_pieces(file for part in (made.items(), inside) for file in part)
        response = StreamingHttpResponse(stream(pieces), content_type="application/zip")
        response["Content-Disposition"] = f'attachment; filename="{self.name}.zip"'
        return response


def folder_of_trajectory(trajectory: Trajectory) -> StaticFolder:
    """Its turns one below the other, with what the viewer shows of them."""
    turns = turns_of(trajectory)
    page = _trajectory_page(trajectory, turns, back="")
    shas = _shas([(trajectory, turns)])
    return StaticFolder(f"trajectory-{trajectory.pk}", {"index.html": page}, _with_style(_screens(shas)))


def folder_of_group(group: Group) -> StaticFolder:
    """Its members side by side, each with a page of its own."""
    lane = group_lane(group, None)
    members = [(row.trajectory, turns_of(row.trajectory)) for row in lane.rows]
    columns = [
        (row, reward_context(trajectory, turns))
        for row, (trajectory, turns) in zip(lane.rows, members, strict=True)
    ]
    context = {"group": group, "columns": columns, "turns": group_turns(lane, first=0)}
    pages: dict[str, str] = {"index.html": render_to_string("static_folder/group.html", context)}
    for trajectory, turns in members:
        pages[f"trajectory-{trajectory.pk}.html"] = _trajectory_page(trajectory, turns, back="index.html")
    return StaticFolder(f"group-{group.pk}", pages, _with_style(_screens(_shas(members))))


def _trajectory_page(trajectory: Trajectory, turns: list[TurnRecord], *, back: str) -> str:
    context = {
        "cards": [_card(turn) for turn in turns],
        "back": back,
        "end_frame": trajectory.final_frame if trajectory.is_final else "",
        **reward_context(trajectory, turns),
    }
    return render_to_string("static_folder/trajectory.html", context)


def _card(turn: TurnRecord) -> dict[str, Any]:
    action = turn.action or {}
    return {
        "turn": turn,
        "state": turn_state(turn),
        "caption": actions_caption(actions_of(turn)),
        "keys": [] if turn.earlier_actions else key_caps(action),
        "written": (turn.completion or {}).get("text", ""),
        "marks": _marks(turn),
        "total": terms_total(turn.terms) if turn.terms else None,
    }


def _marks(turn: TurnRecord) -> list[tuple[float, float]]:
    """Where its actions' points lie, in percent of the screen."""
    names = (("x", "y"), ("to_x", "to_y"))
    points = [(action.get(x), action.get(y)) for action in actions_of(turn) for x, y in names]
    return [
        (round(100 * x / turn.width, 2), round(100 * y / turn.height, 2))
        for x, y in points
        if x is not None and y is not None and turn.width and turn.height
    ]


def _shas(members: Iterable[tuple[Trajectory, list[TurnRecord]]]) -> list[str]:
    """Digests of the screens that the pages show, each once."""
    found = [
        sha
        for trajectory, turns in members
        for sha in (*(turn.frame for turn in turns), trajectory.final_frame, trajectory.last_frame)
    ]
    return [sha for sha in dict.fromkeys(found) if sha]


def _screens(shas: list[str]) -> Files:
    """One that a rule of retention took is left out; the page says what it was."""
    for sha in shas:
        try:
            yield f"{SCREENS}/{sha}.jpg", read_frame(sha, "jpg")
        except FileNotFoundError:
            continue


def _with_style(files: Files) -> Files:
    for path in STYLE:
        source = None if staticfiles_storage.exists(path) else finders.find(path)
        with Path(source).open("rb") if source else staticfiles_storage.open(path) as file:
            yield f"style/{path.rpartition('/')[2]}", file.read()
    yield from files
