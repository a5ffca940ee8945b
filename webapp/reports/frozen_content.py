"""What a version of a report holds: copies of charts, tables and trajectories as they are at that moment."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from webapp.accounts.models import Team
from webapp.analysis.evaluations.stamps import measured_otherwise
from webapp.analysis.evaluations.success_pairs import at_limit, task_outcomes
from webapp.analysis.evaluations.task_matrix import Kind, TaskMatrix, columns_of, mark
from webapp.analysis.series.chart_panels import PANELS, Panel
from webapp.analysis.series.metric_series import evaluation_points, series_of
from webapp.experiment_pages.comparison import MAX_COMPARED, differences
from webapp.experiment_pages.experiment_table import list_rows
from webapp.experiments.models import Evaluation, Experiment, TaskRecord
from webapp.experiments.queries.evaluations import all_evaluations
from webapp.lib.request_values import BadValue
from webapp.reports.models import ReportVersion
from webapp.trajectories.action_words import actions_caption, actions_of
from webapp.trajectories.frame_files.names import SHA256
from webapp.trajectories.models import Trajectory
from webapp.ui.templatetags.deskhand import interval, percent

MAX_POINTS = 300
"""Of a frozen line."""
MAX_ROWS = 500
MAX_TRAJECTORIES = 6
MAX_TURNS = 60
MAX_TURN_TEXT = 1500


@dataclass(frozen=True)
class Choices:
    experiments: list[int]
    charts: list[str] = field(default_factory=list)
    """Titles of panels."""
    with_tasks: bool = False
    with_config: bool = False
    trajectories: list[int] = field(default_factory=list)


def frozen(team: Team, choices: Choices) -> dict[str, Any]:
    """The content of a version. Raises BadValue for what is not the team's."""
    experiments = _experiments(team, choices.experiments)
    panels = [panel for panel in PANELS if panel.title in choices.charts]
    charts = [chart for panel in panels if (chart := _chart(panel, experiments))["lines"]]
    tables = [_summary(experiments)]
    if choices.with_tasks:
        tables += _task_table(experiments)
    if choices.with_config and len(experiments) > 1:
        tables.append(_config_table(experiments))
    tables += _stamp_table(experiments)  # the last, so that texts find the others by their numbers
    for name, blocks in (("chart", charts), ("table", tables)):
        for number, block in enumerate(blocks, start=1):
            block["key"] = f"{name}-{number}"
    return {"charts": charts, "tables": tables, "trajectories": _trajectories(team, choices.trajectories)}


def pictures_of(content: dict[str, Any]) -> set[str]:
    """Digests of all screens that it shows."""
    found = {turn["frame"] for row in content["trajectories"] for turn in row["turns"]}
    found |= {row["final_frame"] for row in content["trajectories"]}
    return {sha256 for sha256 in found if sha256}


def picture_path(version: ReportVersion, sha256: str) -> str:
    """Storage name of a version's own copy of a screen. Raises ValueError when `sha256` is not a digest."""
    if not SHA256.match(sha256):
        raise ValueError(f"not a sha256: {sha256!r}")
    return f"reports/{version.pk}/{sha256}.jpg"


def _experiments(team: Team, ids: list[int]) -> list[Experiment]:
    if not 1 <= len(ids) <= MAX_COMPARED:
        raise BadValue("id", f"choose 1 to {MAX_COMPARED} experiments")
    found = Experiment.objects.filter(team=team, pk__in=ids).select_related("owner").in_bulk()
    if missing := [pk for pk in ids if pk not in found]:
        raise BadValue("id", f"there is no experiment #{missing[0]} in your team")
    return [found[pk] for pk in ids]


# --- charts ------------------------------------------------------------------------------------------


def _chart(panel: Panel, experiments: list[Experiment]) -> dict[str, Any]:
    lines, points = [], []
    for experiment in experiments:
        label = f"#{experiment.pk} " if len(experiments) > 1 else ""
        series = series_of(experiment)
        for name in sorted(series):
            if any(name.startswith(own) if own.endswith("/") else name == own for own in panel.names):
                words = name.partition("/")[2].removesuffix("_s").replace("_", " ")
                lines.append({"name": f"{label}{words}", **_thinner(series[name])})
        if panel.kind == "success" and len(experiments) == 1:
            points = evaluation_points(all_evaluations(experiment))
    return {
        "title": panel.title, "unit": panel.unit, "kind": panel.kind, "lines": lines, "evaluations": points,
    }  # fmt: skip


def _thinner(line: dict[str, list[float]]) -> dict[str, list[float | None]]:
    """Every n-th point, the last one included; what is no finite number is a gap."""
    every = max(1, -(-len(line["x"]) // MAX_POINTS))
    kept = sorted({*range(0, len(line["x"]), every), len(line["x"]) - 1})
    values = [line["y"][place] for place in kept]
    return {
        "x": [line["x"][place] for place in kept],
        "y": [value if value is not None and math.isfinite(value) else None for value in values],
    }


# --- tables ------------------------------------------------------------------------------------------


def _summary(experiments: list[Experiment]) -> dict[str, Any]:
    rows = []
    for row in list_rows(experiments):
        one, last = row.experiment, row.last
        found = (last.sampled, last.greedy) if last else (None, None)
        shares = [solved_text(each) if each else "–" for each in found]
        stamp = last.either.eyes_text if last else "–"
        started = f"{one.started_at:%Y-%m-%d %H:%M}" if one.started_at else "–"
        rows.append(
            [f"#{one.pk} {one.name}", one.status, one.preset or "–", *shares, str(one.step), started, stamp]
        )
    head = ["Experiment", "Status", "Preset", "Sampled, solved", "Greedy, solved", "Step", "Started, UTC"]
    head.append("Measured by")
    return {"title": "Experiments", "head": head, "rows": rows}


def solved_text(evaluation: Evaluation) -> str:
    """What the agent solved and ended, then what a limit ended; by the state where only that was counted."""
    shown, at_limit = evaluation.shown, evaluation.num_solved_at_limit
    text = f"{percent(shown.value)} {interval(shown)}, n = {evaluation.num_samples}"
    if at_limit:
        text = f"{text}, {at_limit} more at a limit"
    elif at_limit is None:
        text = f"{text}, at a limit too"
    return f"{text}, {evaluation.missing_text}" if evaluation.missing_text else text


def _stamp_table(experiments: list[Experiment]) -> list[dict[str, Any]]:
    """What differs between what measured their numbers; none where all were measured alike."""
    measured = [one for column in columns_of(experiments) for one in column.pair.both]
    rows = [[words] for words in measured_otherwise(measured)]
    return [{"title": "Measured otherwise", "head": ["What differs"], "rows": rows}] if rows else []


def _config_table(experiments: list[Experiment]) -> dict[str, Any]:
    rows = [[item.knob.path, *(value or "–" for value in item.values)] for item in differences(experiments)]
    return {
        "title": "Config differences",
        "head": ["Knob", *(f"#{one.pk}" for one in experiments)],
        "rows": rows,
    }


def _task_table(experiments: list[Experiment]) -> list[dict[str, Any]]:
    """Tasks against evaluations, those that changed first; empty without evaluations."""
    columns = columns_of(experiments)
    if not columns:
        return []
    outcomes = task_outcomes(one for column in columns for one in column.pair.both)
    ends = (columns[0], columns[-1])
    kind = Kind.GREEDY if all(column.of(Kind.GREEDY) in outcomes for column in ends) else Kind.SAMPLED
    matrix = TaskMatrix(columns=columns, outcomes=outcomes, baseline=0, compared=len(columns) - 1, kind=kind)
    sets = {experiment.settings.tasks.task_set for experiment in experiments}
    tasks = TaskRecord.objects.filter(task_set__name__in=sets, task_id__in=matrix.task_ids())
    tasks = tasks.order_by("version")  # the newest one is shown
    words = {1: "fixed", -1: "regressed", 0: ""}
    rows = [
        [
            row.name,
            row.family,
            words[row.change],
            *(_outcome(outcomes, column, row.name) for column in columns),
        ]
        for row in matrix.rows(tasks.only("task_id", "family", "level"))[:MAX_ROWS]
    ]
    head = ["Task", "Family", "Change, first to last", *(column.title for column in columns)]
    return [{"title": "Tasks (sampled, greedy; ~ solved at a limit)", "head": head, "rows": rows}]


def _outcome(outcomes: dict[int, dict[str, Any]], column: Any, name: str) -> str:
    sampled, greedy = (
        outcomes.get(column.of(kind) or 0, {}).get(name) for kind in (Kind.SAMPLED, Kind.GREEDY)
    )
    texts = [
        f"{sampled[0]}/{sampled[1]}{'~' if at_limit(sampled) else ''}" if sampled else "",
        mark(greedy) if greedy else "",
    ]
    return " ".join(text for text in texts if text) or "·"


# --- trajectories ------------------------------------------------------------------------------------


def _trajectories(team: Team, ids: Sequence[int]) -> list[dict[str, Any]]:
    if len(ids) > MAX_TRAJECTORIES:
        raise BadValue("trajectories", f"at most {MAX_TRAJECTORIES}, these are {len(ids)}")
    found = Trajectory.objects.filter(team=team, pk__in=ids).select_related("task").in_bulk()
    if missing := [pk for pk in ids if pk not in found]:
        raise BadValue("trajectories", f"there is no trajectory #{missing[0]} in your team")
    return [_trajectory(found[pk]) for pk in dict.fromkeys(ids)]


def _trajectory(row: Trajectory) -> dict[str, Any]:
    turns = [
        {
            "number": turn.index + 1,
            "frame": turn.frame,
            "caption": actions_caption(actions_of(turn)),
            "thought": turn.thought[:MAX_TURN_TEXT],
            "problem": (turn.parse_error or turn.action_error)[:MAX_TURN_TEXT],
        }
        for turn in row.turns.order_by("index")[:MAX_TURNS]
    ]
    return {
        "id": row.pk, "instruction": row.task.instruction, "status": row.status, "score": row.score,
        "reward": row.reward, "advantage": row.advantage, "num_turns": row.num_turns, "turns": turns,
        "final_frame": row.final_frame,
    }  # fmt: skip
