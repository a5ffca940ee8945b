"""What the records of a finished lane say: was anything lost, scored by mistake, or written twice?"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from benchmarks.chaos.product_run import SCORED, Records
from webapp.trajectories.frame_files.names import frame_path

UNFINISHED = "('queued', 'parked', 'resetting', 'running', 'evaluating')"


def judge(run: Records, num_steps: int) -> dict[str, Any]:
    """Counts, all of which have to be 0 except `trajectories` and what ended how; "passed"."""
    ours = f"t.experiment_id = {run.experiment}"
    faults = {
        "unfinished": _count(run, f"trajectories_trajectory t where {ours} and t.status in {UNFINISHED}"),
        "lost_places": len(_lost_places(run)),
        "errored_with_score": _count(
            run,
            f"trajectories_trajectory t where {ours} and t.status in ('errored', 'cancelled')"
            " and (t.score is not null or t.reward is not null)",
        ),
        "scored_unseen": _count(
            run,
            f"trajectories_trajectory t where {ours} and t.status in {SCORED}"
            " and (t.score is null or t.reward is null or t.final_frame = '' or t.desktop_id is null)",
        ),
        "out_of_time": _count(run, f"trajectories_trajectory t where {ours} and t.\"limit\" = 'time'"),
        "scored_half": _scored_half(run),
        "duplicate_turns": _repeated(run, 'trajectory_id, "index"', "trajectories_turnrecord", "true"),
        "duplicate_places": _repeated(
            run,
            "group_id, member, tries",
            "trajectories_trajectory t",
            f"{ours} and t.source <> 'human'",
        ),
        "scored_twice": _repeated(
            run, "group_id, member", "trajectories_trajectory t", f"{ours} and t.status in {SCORED}"
        ),
        "wrong_steps": _wrong_steps(run, num_steps),
        "bad_frames": len(_bad_frames(run)),
        "open_attempts": _count(
            run, f"experiments_attempt a where a.experiment_id = {run.experiment} and a.ended_at is null"
        ),
    }
    ends = run.rows(
        f"select t.status, count(*) from trajectories_trajectory t where {ours} group by t.status"
    )
    kinds = run.rows(
        f"select t.error_kind, count(*) from trajectories_trajectory t where {ours} and t.status = 'errored'"
        " group by t.error_kind"
    )
    attempts = run.rows(
        f"select status, reason from experiments_attempt where experiment_id = {run.experiment}"
        " order by number"
    )
    progress = run.progress()
    return {
        "end": progress.status,
        "message": progress.message,
        "counts": faults,
        "trajectories": dict(ends),
        "errors": dict(kinds),
        "attempts": [f"{status}: {without_paths(reason)}".rstrip(": ") for status, reason in attempts],
        "passed": progress.status == "finished" and not any(faults.values()),
    }


def without_paths(text: str) -> str:
    """Its beginning, for a file that is kept: where the installation lay does not matter."""
    return re.sub(r"/\S+/", "", text)[:200]


def _count(run: Records, what: str) -> int:
    ((number,),) = run.rows(f"select count(*) from {what}")
    return int(number)


def _lost_places(run: Records) -> list[tuple[Any, ...]]:
    """(group, places with a score, size) of groups, not called off, that lack a score of a member."""
    return run.rows(
        "select g.id, count(t.id), g.size from trajectories_group g"
        f" left join trajectories_trajectory t on t.group_id = g.id and t.status in {SCORED}"
        f" where g.experiment_id = {run.experiment} and not g.is_cancelled"
        " group by g.id, g.size, g.finished_at, g.num_final"
        " having count(t.id) <> g.size or g.finished_at is null or g.num_final <> g.size"
    )


def _scored_half(run: Records) -> int:
    """Scored trajectories of which a turn is missing, or was never completed though others followed it."""
    return len(
        run.rows(
            "select t.id from trajectories_trajectory t"
            " join trajectories_turnrecord r on r.trajectory_id = t.id"
            f" where t.experiment_id = {run.experiment} and t.status in {SCORED}"
            ' group by t.id, t.num_turns, t."limit"'
            ' having count(r.id) <> t.num_turns or max(r."index") <> t.num_turns - 1'
            " or sum(case when r.completed_at is null then 1 else 0 end)"
            " > (case when t.\"limit\" = 'tokens' then 1 else 0 end)"
        )
    )


def _repeated(run: Records, key: str, table: str, where: str) -> int:
    return len(run.rows(f"select {key} from {table} where {where} group by {key} having count(*) > 1"))


def _wrong_steps(run: Records, num_steps: int) -> int:
    """Steps whose mean reward was recorded never or more than once."""
    found = run.rows(
        f"select step from experiments_metricpoint where experiment_id = {run.experiment}"
        " and name = 'rollout/reward_mean'"
    )
    steps = [step for (step,) in found]
    return sum(steps.count(step) != 1 for step in range(1, num_steps + 1)) + sum(
        step > num_steps for step in steps
    )


def _bad_frames(run: Records) -> list[str]:
    """Screenshots that a row names and whose file is absent, or not what its name says."""
    named = run.rows(
        "select frame from trajectories_turnrecord where frame <> ''"
        " union select final_frame from trajectories_trajectory where final_frame <> ''"
    )
    bad = []
    for (sha,) in named:
        path = run.folder / "media" / frame_path(sha)
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != sha:
            bad.append(sha)
    return bad
